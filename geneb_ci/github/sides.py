"""The changes of a pull request on the base branch, alone and with the other open ones.

A row is compared with the rows of the pull requests that pass. Each of them has a fingerprint in
its receipt, so that nothing of the others is read again.
"""

import base64
import hashlib
import itertools
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from geneb_ci.check.change import (
    REGULAR,
    Blob,
    Change,
    FileChange,
    RepositoryFolders,
    Rival,
    RivalKind,
)
from geneb_ci.common.finding import Fault
from geneb_ci.github.errors import Tampered, UnexpectedReply
from geneb_ci.github.replies import Commit
from geneb_ci.github.verdict.model import SHORT, Fingerprint
from geneb_ci.publish.git import CODE, INPUTS
from geneb_ci.render.plain import visible
from geneb_ci.statistics.neighbours import NEAR, near_cells_of_copy
from geneb_ci.submission.names import skeletons
from geneb_ci.submission.peers import normal_form
from geneb_ci.submission.reading import BYTES_MAX, too_large
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import blob_id
from reference_harness.formats.submission import Submission

TAMPERED_FIX = (
    "run the command again; if it fails again, the connection to GitHub may be tampered with"
)


class Tree(NamedTuple):
    """The files of a tree of git by their paths: everything except folders."""

    files: dict[str, Blob]
    is_cut: bool
    """Whether some are missing."""


def tree_of(listed: Iterable[tuple[str, str, str, int]], *, is_cut: bool = False) -> Tree:
    """Return a tree by path, mode, id and size of its files. Raises Tampered for a path twice."""
    files: dict[str, Blob] = {}
    for path, mode, sha, size in listed:
        if path in files:
            raise Tampered(f"a tree has a duplicate path: {ascii(path)[:80]}", TAMPERED_FIX)
        files[path] = Blob(mode, sha, size)
    return Tree(files, is_cut)


class Source(Protocol):
    """Where commits, trees and blobs are read: the API of GitHub, or a clone."""

    def merge_base(self, base: str, head: str) -> Commit:
        """Return the merge base of two commits."""

    def tree(self, sha: str) -> Tree:
        """Return the files of a commit or tree."""

    def blob(self, sha: str) -> bytes:
        """Return the bytes of a file."""


@dataclass(frozen=True)
class Main:
    """The head of the base branch."""

    sha: str
    files: dict[str, Blob]
    """Every path except folders."""
    digest: str
    """SHA-256 of everything on it that a verdict depends on."""
    digested_paths: frozenset[str] = field(default=frozenset(), repr=False)
    """The paths that the digest covers."""


def main_at(source: Source, commit: Commit, more_paths: Iterable[str] = ()) -> Main:
    """Return the state of the base branch at a commit; one request, unless its tree is cached.

    `more_paths` are paths that the settings name beside the usual ones. Raises UnexpectedReply if
    GitHub does not list all of its files.
    """
    files, is_cut = source.tree(commit.tree)
    if is_cut:
        raise UnexpectedReply(
            "GitHub truncated the list of files of the base branch",
            "the repository has too many files: remove those that do not belong to it",
        )
    roots = (*INPUTS, CODE, *more_paths)
    relevant = frozenset(
        path for path in files if path in roots or path.startswith(tuple(f"{r}/" for r in roots))
    )
    lines = (f"{files[path].mode} {files[path].sha} {path}\n" for path in sorted(relevant))
    digest = hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    return Main(commit.sha, files, digest, relevant)


@dataclass(frozen=True)
class Sides:
    """The change that a pull request makes on the base branch."""

    merge_base: str
    change: Change
    head: dict[str, Blob]
    """Every path of the result of the merge except folders."""


def read_sides(source: Source, head: str, folders: RepositoryFolders, main: Main) -> Sides:
    """Compare merge base, head and base branch, in at most three requests.

    A path counts as changed if it differs from the merge base and from the base branch: what was
    merged meanwhile, such as the parent of a stacked pull request, is not part of the change.
    Raises Tampered if an answer contradicts itself.
    """
    base = source.merge_base(main.sha, head)
    before, base_cut = source.tree(base.tree)
    after, head_cut = source.tree(head)
    now = main.files
    paths = sorted(
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path) != now.get(path)
    )
    files = tuple(FileChange(path, now.get(path), after.get(path)) for path in paths)
    outdated = tuple(path for path in paths if before.get(path) != now.get(path))
    change = Change(files, truncated=base_cut or head_cut, folders=folders, outdated=outdated)
    merged = {**now, **{path: after.get(path) for path in paths}}
    head_files = {path: blob for path, blob in merged.items() if blob is not None}
    return Sides(base.sha, change, head_files)


def read_blob(source: Source, blob: Blob) -> bytes | Fault:
    """Return the bytes of a file, in one request; a Fault without a request if it is too large.

    Raises Tampered if the bytes do not match their git object id.
    """
    if blob.mode != REGULAR:
        raise ValueError(blob.mode)
    if blob.size > BYTES_MAX:
        return too_large(blob.size)
    raw = source.blob(blob.sha)
    if blob_id(raw) != blob.sha:
        what = f"blob {blob.sha}: GitHub sent bytes with the id {blob_id(raw)}"
        raise Tampered(what, TAMPERED_FIX)
    return raw if len(raw) <= BYTES_MAX else too_large(len(raw))


# Scores from -1 to 1 in steps of 2 / STEPS: a thirtieth of what counts as near.
STEPS = 65_534
MISSING = 65_535
_NEAR_STEPS = NEAR / 2 * STEPS
# Named pull requests of either rule; a hundred copies of one row would otherwise fill a comment.
RIVALS_MAX = 5


def fingerprint(submission: Submission, change: Change, benchmark: Benchmark) -> Fingerprint:
    """Return what a row is compared by: names, files, and its scores in the primary metric."""
    cells = []
    for regime, task in itertools.product(benchmark.regimes, benchmark.task_ids):
        scores = submission.results.get(regime, {}).get(task)
        score = getattr(scores, benchmark.primary_metric, None)
        cells.append(MISSING if score is None else round((score + 1) / 2 * STEPS))
    return Fingerprint(
        model=submission.model_id,
        display=visible(submission.meta.display or "", SHORT),
        paths=[visible(file.path, SHORT) for file in change.own],
        cells=base64.b64encode(struct.pack(f"<{len(cells)}H", *cells)).decode(),
    )


def rivals(fingerprint: Fingerprint, others: Mapping[int, Fingerprint]) -> tuple[Rival, ...]:
    """Return the pull requests that share a file, a name or the scores with a row, by number.

    Each rule has its own limit: a warning about copies never takes the place of a collision.
    """
    all_rivals = [
        rival for number in sorted(others) for rival in _shared(fingerprint, number, others[number])
    ]
    copies = [rival for rival in all_rivals if rival.kind is RivalKind.COPY]
    collisions = [rival for rival in all_rivals if rival.kind is not RivalKind.COPY]
    shown = (*collisions[:RIVALS_MAX], *copies[:RIVALS_MAX])
    return tuple(sorted(shown, key=lambda rival: rival.number))


def numbers(rivals: Iterable[Rival]) -> list[int]:
    """Return the numbers of the pull requests, each once."""
    return sorted({rival.number for rival in rivals})


def _shared(fingerprint: Fingerprint, number: int, other: Fingerprint) -> Iterator[Rival]:
    """Yield what two rows share: a file, or else a name; and the scores."""
    other_paths = {path.casefold() for path in other.paths}
    files = [path for path in fingerprint.paths if path.casefold() in other_paths]
    if files:
        yield Rival(number, RivalKind.FILE, files[0])
    elif normal_form(fingerprint.model) == normal_form(other.model):
        yield Rival(number, RivalKind.NAME, other.model)
    else:
        alike = (
            name for name in (other.model, other.display) if _skeletons(name) & _of(fingerprint)
        )
        yield from (Rival(number, RivalKind.NAME, name) for name in itertools.islice(alike, 1))
    if fingerprint.model != other.model and _is_copy(fingerprint.cells, other.cells):
        yield Rival(number, RivalKind.COPY, other.model)


def _of(fingerprint: Fingerprint) -> frozenset[str]:
    return _skeletons(fingerprint.model) | _skeletons(fingerprint.display)


def _skeletons(name: str) -> frozenset[str]:
    return skeletons(name) if name.strip() else frozenset()


def _is_copy(scores: str, other: str) -> bool:
    """Whether so many cells are near as in no two real models, or all of them are."""
    pairs = [(x, y) for x, y in zip(_cells(scores), _cells(other), strict=False) if _both(x, y)]
    near = sum(abs(x - y) < _NEAR_STEPS for x, y in pairs)
    return bool(pairs) and near >= min(len(pairs), math.ceil(near_cells_of_copy(len(pairs))))


def _both(x: int, y: int) -> bool:
    return MISSING not in {x, y}


def _cells(text: str) -> tuple[int, ...]:
    raw = base64.b64decode(text)
    return struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) // 2 * 2])
