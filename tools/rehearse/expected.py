"""Comparison of the state after a chapter with the expected one."""


class Mismatch(Exception):  # noqa: N818 (named after what is wrong)
    """The state after a chapter is not the expected one."""


def hold(what: str, found: object, expected: object) -> None:
    """Raise Mismatch where something is not as expected."""
    if found != expected:
        raise Mismatch(f"{what}: found {found!r}, expected {expected!r}")


def hold_in(what: str, due: str, found: str | list[str]) -> None:
    """Raise Mismatch where something is not in a text or a list."""
    if due not in found:
        raise Mismatch(f"{what}: {due!r} is missing")
