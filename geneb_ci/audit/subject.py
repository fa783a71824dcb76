"""What a plan is about, found in a checkout and held against the commitment byte by byte."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.extractor_tree import BUILTIN, extractor_code, tree_files
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.benchmark import Benchmark
from geneb_ci.config import Layout, benchmark_of
from geneb_ci.errors import NothingChecked
from geneb_ci.read.document import read_document

AGAIN = "check out the commit that was committed to, or commit and draw anew"


@dataclass(frozen=True)
class Subject:
    """A submission under audit, with what its rerun needs of the checkout."""

    document: dict[str, Any]
    """The submission, as it was read."""
    benchmark: Benchmark
    modules: dict[str, bytes]
    """Files of the extractors' folder by name; empty for a built-in."""

    @property
    def dtype(self) -> str | None:
        """The dtype the run declares, in format 1.1."""
        embedding = self.document.get("run", {}).get("embedding", {})
        return embedding.get("dtype") if isinstance(embedding, dict) else None

    @property
    def has_canonical(self) -> bool:
        """Whether any cell claims a canonical score."""
        evidence = self.document.get("evidence", {})
        return any(cell.get("canonical") for tasks in evidence.values() for cell in tasks.values())


def subject_of(commitment: Commitment, layout: Layout) -> Subject:
    """Find what was committed to.

    Raises AuditRefused when submission, extractor, benchmark or the constants of the tolerance
    are not those of the commitment, NothingChecked when a file is not there.
    """
    if layout.submissions is None:
        raise NothingChecked(
            "the audited submission lies in no repository", "run this in a checkout of one"
        )
    document = read_document(layout.submissions / f"{commitment.model_id}.json")
    _same("submission", document.sha256, commitment.submission_sha256)
    benchmark = benchmark_of(layout)
    _same("benchmark", benchmark.sha256, commitment.benchmark.sha256)
    _same("tolerance", tolerance_digest(), commitment.policy.tolerance)
    committed = commitment.extractor
    if committed.path.startswith(BUILTIN):
        return Subject(document.value, benchmark, {})
    here = extractor_code(
        layout.extractors,
        layout.root,
        committed.path,
        committed.class_name,
        committed.sha256,
        committed.options,
    )
    _same("extractors' folder", here.tree, committed.tree)
    return Subject(document.value, benchmark, tree_files(_folder(layout)))


def lay_out(modules: dict[str, bytes], folder: Path) -> None:
    """Write the files that were hashed: the sandbox sees these, and not what lies there later."""
    for name, raw in modules.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


def _folder(layout: Layout) -> Path:
    if layout.extractors is None:
        raise NothingChecked("there is no folder of extractors here", AGAIN)
    return layout.extractors


def _same(what: str, here: str, committed: str) -> None:
    if here != committed:
        raise AuditRefused(
            f"the {what} here is not the one committed to: {here[:16]}..., expected "
            f"{committed[:16]}...",
            AGAIN,
        )
