"""Compare the row of a pull request with the rows of other open pull requests that pass.

Our comment on each pull request contains the fingerprint of its row, so no row is read again.
"""

import base64
import itertools
import math
import struct
from collections.abc import Iterable, Iterator, Mapping

from geneb_ci.check.change import Change, Rival, RivalKind
from geneb_ci.github.verdict.model import SHORT, Fingerprint
from geneb_ci.render.plain import visible
from geneb_ci.statistics.neighbours import NEAR_DISTANCE, copy_cells_min
from geneb_ci.submission.names import skeletons
from geneb_ci.submission.peers import normal_model_id
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission

# Scores from -1 to 1 in steps of 2 / SCORE_STEPS: a thirtieth of what counts as near.
SCORE_STEPS = 65_534
MISSING_CELL = 65_535
_NEAR_STEPS = NEAR_DISTANCE / 2 * SCORE_STEPS
# Pull requests that each rule names; a hundred copies of one row would otherwise fill a comment.
RIVALS_MAX = 5


def fingerprint(submission: Submission, change: Change, benchmark: Benchmark) -> Fingerprint:
    """Return the facts used to compare rows: names, files, and scores in the primary metric."""
    cells = []
    for regime, task in itertools.product(benchmark.regimes, benchmark.task_ids):
        scores = submission.results.get(regime, {}).get(task)
        score = getattr(scores, benchmark.primary_metric, None)
        cells.append(MISSING_CELL if score is None else round((score + 1) / 2 * SCORE_STEPS))
    return Fingerprint(
        model=submission.model_id,
        display=visible(submission.meta.display or "", SHORT),
        paths=[visible(file.path, SHORT) for file in change.model_files],
        cells=base64.b64encode(struct.pack(f"<{len(cells)}H", *cells)).decode(),
    )


def rivals(
    fingerprint: Fingerprint, other_fingerprints: Mapping[int, Fingerprint]
) -> tuple[Rival, ...]:
    """Return the pull requests that share a file, a name or scores with a row, sorted by number.

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
            if _skeletons(name) & _name_skeletons(fingerprint)
        )
        yield from (
            Rival(number, RivalKind.NAME, name) for name in itertools.islice(similar_names, 1)
        )
    if fingerprint.model != other.model and _is_copy(fingerprint.cells, other.cells):
        yield Rival(number, RivalKind.COPY, other.model)


def _name_skeletons(fingerprint: Fingerprint) -> frozenset[str]:
    return _skeletons(fingerprint.model) | _skeletons(fingerprint.display)


def _skeletons(model: str) -> frozenset[str]:
    return skeletons(model) if model.strip() else frozenset()


def _is_copy(encoded: str, other_encoded: str) -> bool:
    """Whether all scores are nearly equal, or more of them than of any two real models."""
    pairs = [
        (x, y)
        for x, y in zip(_scores_in_steps(encoded), _scores_in_steps(other_encoded), strict=False)
        if MISSING_CELL not in {x, y}
    ]
    near_count = sum(abs(x - y) < _NEAR_STEPS for x, y in pairs)
    return bool(pairs) and near_count >= min(len(pairs), math.ceil(copy_cells_min(len(pairs))))


def _scores_in_steps(encoded: str) -> tuple[int, ...]:
    """Return the scores in a fingerprint, each in steps, or MISSING_CELL."""
    raw = base64.b64decode(encoded)
    return struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) // 2 * 2])
