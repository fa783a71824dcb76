"""Compare the row of a pull request with the rows of other open pull requests that pass.

Our comment on each pull request contains the fingerprint of its row, so no row is read again.
"""

import base64
import itertools
import math
import struct
from collections.abc import Iterable, Iterator, Mapping

from geneb_ci.check.change import Change, Rival, RivalKind
from geneb_ci.github.verdict.model import SHORT_MAX, Fingerprint
from geneb_ci.render.plain import visible
from geneb_ci.statistics.neighbours import NEAR_DISTANCE, copy_cells_min
from geneb_ci.submission.names import skeletons
from geneb_ci.submission.peers import normal_model_id
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission

SCORE_STEPS = 65_534
"""Number of equal steps between the scores -1 and 1; a fingerprint stores the step of a score.

A step is a thirtieth of the difference up to which two scores count as nearly equal.
"""
MISSING_CELL = 65_535
"""Number that a fingerprint stores for a missing cell."""
_NEAR_STEPS_MAX = NEAR_DISTANCE / 2 * SCORE_STEPS
"""Number of steps below which two scores count as nearly equal."""
RIVALS_MAX = 5
"""Maximum number of rival pull requests that a rule names, so that copies do not fill a comment."""


def fingerprint(submission: Submission, change: Change, benchmark: Benchmark) -> Fingerprint:
    """Return the fingerprint of a row: its names, files and scores in the primary metric."""
    cells = []
    for regime, task in itertools.product(benchmark.regimes, benchmark.task_ids):
        scores = submission.results.get(regime, {}).get(task)
        score = getattr(scores, benchmark.primary_metric, None)
        cells.append(MISSING_CELL if score is None else round((score + 1) / 2 * SCORE_STEPS))
    return Fingerprint(
        model=submission.model_id,
        display=visible(submission.meta.display or "", SHORT_MAX),
        paths=[visible(file.path, SHORT_MAX) for file in change.model_files],
        cells=base64.b64encode(struct.pack(f"<{len(cells)}H", *cells)).decode(),
    )


def rivals(
    fingerprint: Fingerprint, other_fingerprints: Mapping[int, Fingerprint]
) -> tuple[Rival, ...]:
    """Return the rivals of a row: pull requests that share a file, a name or scores with it.

    Each rule has its own limit, so warnings about copies never displace a collision.
    """
    all_rivals = [
        rival
        for number in sorted(other_fingerprints)
        for rival in _rivals_of_pull(fingerprint, number, other_fingerprints[number])
    ]
    copies = [rival for rival in all_rivals if rival.kind is RivalKind.COPY]
    collisions = [rival for rival in all_rivals if rival.kind is not RivalKind.COPY]
    listed_rivals = (*collisions[:RIVALS_MAX], *copies[:RIVALS_MAX])
    return tuple(sorted(listed_rivals, key=lambda rival: rival.number))


def pull_numbers(rivals: Iterable[Rival]) -> list[int]:
    """Return the numbers of the pull requests, each once."""
    return sorted({rival.number for rival in rivals})


def _rivals_of_pull(fingerprint: Fingerprint, number: int, other: Fingerprint) -> Iterator[Rival]:
    """Yield a rival for a shared file, or else for a shared name; and one for shared scores."""
    other_paths = {path.casefold() for path in other.paths}
    files = [path for path in fingerprint.paths if path.casefold() in other_paths]
    if files:
        yield Rival(number, RivalKind.FILE, files[0])
    elif normal_model_id(fingerprint.model) == normal_model_id(other.model):
        yield Rival(number, RivalKind.NAME, other.model)
    else:
        similar_names = (
            name
            for name in (other.model, other.display)
            if _skeletons_of_name(name) & _skeletons_of_row(fingerprint)
        )
        yield from (
            Rival(number, RivalKind.NAME, name) for name in itertools.islice(similar_names, 1)
        )
    if fingerprint.model != other.model and _is_copy(fingerprint.cells, other.cells):
        yield Rival(number, RivalKind.COPY, other.model)


def _skeletons_of_row(fingerprint: Fingerprint) -> frozenset[str]:
    """Return the skeletons of a row's two names: equal for names that look alike."""
    return _skeletons_of_name(fingerprint.model) | _skeletons_of_name(fingerprint.display)


def _skeletons_of_name(model: str) -> frozenset[str]:
    """Return the skeletons of a name, which are equal for names that look alike."""
    return skeletons(model) if model.strip() else frozenset()


def _is_copy(encoded: str, other_encoded: str) -> bool:
    """Whether so many scores are nearly equal that one row must be a copy of the other."""
    pairs = [
        (x, y)
        for x, y in zip(_scores_in_steps(encoded), _scores_in_steps(other_encoded), strict=False)
        if MISSING_CELL not in {x, y}
    ]
    near_count = sum(abs(x - y) < _NEAR_STEPS_MAX for x, y in pairs)
    return bool(pairs) and near_count >= min(len(pairs), math.ceil(copy_cells_min(len(pairs))))


def _scores_in_steps(encoded: str) -> tuple[int, ...]:
    """Return the scores in a fingerprint, each in steps, or MISSING_CELL."""
    raw = base64.b64decode(encoded)
    return struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) // 2 * 2])
