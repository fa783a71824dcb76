"""Trust level of a row at one point of the history, from the evidence that lay there then."""

import functools
import hashlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.config import Kind, Layout
from geneb_ci.errors import BadConfiguration
from geneb_ci.label.evidence import BrokenRecordError, Evidence, gather
from geneb_ci.publish.inputs import AUDITS, BENCHMARK, POLICY, SUBMISSIONS

# Rows without an audit share one entry; the others have one for each change of their evidence.
STATES_MAX = 1024


@dataclass(frozen=True)
class Standing:
    """All that lay in the repository about one row at one commit."""

    model: str
    submission: bytes
    audits: Mapping[str, bytes]
    """Path to bytes of each audit record of this model, and of each withdrawal."""
    policy: Mapping[str, bytes]
    """Path to bytes of what decides how evidence counts: policy, keys, benchmark."""


Levels = Callable[[Standing], str | None]


def level_at(standing: Standing) -> str | None:
    """Give the level, by the same steps that `build` follows.

    None where `build` would have refused: the policy could not be used, or a record was broken.
    An earlier commit cannot be repaired, so that this is no fault of today.
    """
    files = dict(standing.policy)
    if standing.audits:
        own = {f"{SUBMISSIONS}/{standing.model}.json": standing.submission}
        files |= {**standing.audits, **own}
    evidence = _evidence(tuple(sorted(files.items())))
    if evidence is None:
        return None
    return str(evidence.decide(hashlib.sha256(standing.submission).hexdigest()).level)


@functools.lru_cache(maxsize=STATES_MAX)
def _evidence(files: tuple[tuple[str, bytes], ...]) -> Evidence | None:
    """Verify the records among some files; to verify one takes half a second."""
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as name:
        root = Path(name).resolve()
        for path, content in files:
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        try:
            evidence = gather(_layout(root))
            evidence.require_sound()
        except (BadConfiguration, BrokenRecordError):
            return None
    return evidence


def _layout(root: Path) -> Layout:
    def there(path: str) -> Path | None:
        return root / path if (root / path).exists() else None

    return Layout(
        Kind.GENEB_CI,
        root,
        submissions=there(SUBMISSIONS),
        benchmark=there(BENCHMARK),
        policy=there(POLICY),
        audits=there(AUDITS),
    )
