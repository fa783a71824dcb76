"""A code frame: the text around a place, cut to a width, and where its caret goes."""

from rich.cells import cell_len

from geneb_ci.report.plain import pieces

_MARK = "..."


def frame(text: str, at: int, width: int, *, is_cut: bool) -> tuple[str, int]:
    """Give the text around `at` in at most `width` cells, and the cell of the place in it.

    `is_cut` says that the line goes on to the left of `text`; otherwise its indent is left out.
    """
    if not is_cut:
        indent = min(at, len(text) - len(text.lstrip(" \t")))
        text, at = text[indent:], at - indent
    left = max(0, at - width)
    is_cut = is_cut or left > 0
    shown = pieces(text[left : at + width].replace("\t", " "))
    at = min(at - left, len(shown))
    start, stop = _window(shown, at, width - 2 * len(_MARK))
    before = (_MARK if is_cut or start > 0 else "") + "".join(shown[start:at])
    after = "".join(shown[at:stop]) + (_MARK if stop < len(shown) else "")
    return before + after, cell_len(before)


def _window(shown: list[str], at: int, room: int) -> tuple[int, int]:
    """Grow from a place to both sides, one character a step, while there is room."""
    start = stop = at
    grown = True
    while grown:
        grown = False
        if stop < len(shown) and (need := cell_len(shown[stop])) <= room:
            stop, room, grown = stop + 1, room - need, True
        if start > 0 and (need := cell_len(shown[start - 1])) <= room:
            start, room, grown = start - 1, room - need, True
    return start, stop
