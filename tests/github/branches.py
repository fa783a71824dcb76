"""Pull requests as branches of a clone, and the same on the loopback server."""

import subprocess
from pathlib import Path

from geneb_ci.github.reconcile import sweep
from geneb_ci.github.verdict.model import PullVerdict
from geneb_ci.github.verdict.verdict_line import decode, encode
from tests.github.history import Files
from tests.github.server import REPOSITORY
from tests.github.world import World


class Case:
    """A pull request, the files of main that it comes with, and those that main got later."""

    def __init__(
        self,
        changes: Files,
        main: Files | None = None,
        gone: tuple[str, ...] = (),
        later: Files | None = None,
    ):
        self.changes, self.main, self.gone, self.later = changes, main or {}, gone, later or {}


MOVED = {"submissions/cards/": "cards/", "submissions/extractors/": "harness/code/"}
"""Folders of a board that has them elsewhere, by its settings."""
MOVED_SETTINGS = b'[tool.geneb-ci]\ncards = "cards"\nextractors = "harness/code"\n'


def moved_path(path: str) -> str:
    """Return where a path of a usual board is in one with other folders."""
    for folder, other in MOVED.items():
        if path.startswith(folder):
            return f"{other}{path.removeprefix(folder)}"
    return path


def moved_files(files: Files) -> Files:
    return {moved_path(path): entry for path, entry in files.items()}


def moved_case(case: Case) -> Case:
    """Return a case with its files where a board with other folders has them."""
    gone = tuple(map(moved_path, case.gone))
    return Case(moved_files(case.changes), moved_files(case.main), gone, moved_files(case.later))


def quoted(path: str) -> bytes:
    """Return a path as `git fast-import` reads it; a lone surrogate stands for a byte."""
    raw = path.encode(errors="surrogateescape")
    return b'"%s"' % b"".join(b"\\%03o" % byte for byte in raw)


def fast_import(base: Files, cases: dict[str, Case]) -> bytes:
    """Write all commits as one stream: for each case its main, and its branch."""
    out = bytearray()

    def file(path: str, entry: tuple[str, bytes]) -> None:
        mode, raw = entry
        name = quoted(path)
        if mode == "160000":
            out.extend(b"M 160000 " + raw + b" " + name + b"\n")
        else:
            out.extend(b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), name, len(raw), raw))

    def commit(ref: str, parent: str, files: Files, gone: tuple[str, ...] = ()) -> None:
        out.extend(
            f"commit refs/heads/{ref}\ncommitter M <m@example.org> 1795000000 +0000\n".encode()
        )
        out.extend(b"data 1\nx\n")
        if parent:
            out.extend(f"from refs/heads/{parent}\n".encode())
        for path, entry in files.items():
            file(path, entry)
        for path in gone:
            out.extend(b"D %s\n" % quoted(path))

    commit("start", "", base)
    for name, case in cases.items():
        commit(f"main-{name}", "start", case.main)
        commit(f"pull-{name}", f"main-{name}", case.changes, case.gone)
        if case.later:
            commit(f"main-{name}", "", case.later)  # on top of what it has
    return bytes(out)


def import_cases(world: World, clone: Path, cases: dict[str, Case]) -> None:
    """Make the branches `main-NAME` and `pull-NAME` of each case in a clone of a world."""
    first = next(iter(world.server.commits))
    stream = fast_import(world.files(first), cases)
    command = ["git", "-C", str(clone), "fast-import", "--quiet", "--force"]
    subprocess.run(command, input=stream, check=True)


def remote(world: World, case: Case) -> PullVerdict:
    """Return the verdict of the server on the same pull request."""
    server = world.server
    base = world.files(next(iter(server.commits))) | case.main
    server.default_head = server.commit(base, next(iter(server.commits)))
    head = {
        path.encode(errors="surrogateescape").decode(errors="replace"): entry  # as JSON has it
        for path, entry in (base | case.changes).items()
        if path not in case.gone
    }
    server.pulls.clear()  # a sweep looks at those that were closed, too
    server.open_pull(server.commit(head, server.default_head), server.default_head)
    if case.later:
        server.default_head = server.commit(base | case.later, server.default_head)
    sweep_result = sweep(world.github(), world.layout)
    assert not sweep_result.problems
    (verdict,) = decode(
        encode(sweep_result.verdicts), REPOSITORY
    ).pulls  # the job that writes takes it
    return verdict
