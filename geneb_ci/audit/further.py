"""Sequences that an audit embeds beside those of a task: variants, and fresh labelled ones."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from geneb_ci.audit.fresh import FreshSet
from geneb_ci.audit.harness import HarnessProcess
from geneb_ci.audit.scoring import TaskSource, variants_of
from geneb_ci.audit.work import FURTHER
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.types import Count, Name, StrictModel, first_error


class FurtherSequence(StrictModel):
    """One sequence beside those of a task, as schemas of the harness have it."""

    split: Literal["train", "test", "fresh"]
    row: Count
    kind: Name
    sequence: Annotated[str, Field(min_length=1)]
    label: int | None = None


class FurtherSequences(StrictModel):
    """All of a task."""

    schema_version: Literal["1.0"]
    rows: list[FurtherSequence]


def variant_seed(plan_seed: str, nonce: str) -> str:
    """Return the text that decides variants: nobody knows it before the audit, all after it."""
    return hashlib.sha256(bytes.fromhex(plan_seed) + bytes.fromhex(nonce)).hexdigest()


def further_of(
    task: str,
    source: TaskSource,
    harness: HarnessProcess,
    folder: Path,
    seed: str,
    rows: int,
    fresh: FreshSet | None,
    *,
    reverse: bool,
) -> FurtherSequences:
    """Write the sequences beside those of a task to `FURTHER` in a folder, and return them.

    Raises NothingChecked, with what the harness said, when it cannot.
    """
    path = folder / FURTHER
    variants_of(task, source, harness, seed, rows, path, reverse=reverse)
    found = read_further(path)
    if fresh is not None:
        own = [one for one in fresh.rows if one.task == task]
        found.rows.extend(
            FurtherSequence(
                split="fresh", row=number, kind="fresh", sequence=one.sequence, label=one.label
            )
            for number, one in enumerate(own)
        )
        path.write_text(json.dumps(found.model_dump()) + "\n", encoding="ascii")
    return found


def read_further(path: Path) -> FurtherSequences:
    """Read what `further_of` wrote. Raises NothingChecked."""
    try:
        return FurtherSequences.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        said = first_error(error) if isinstance(error, ValidationError) else error.strerror
        raise NothingChecked(
            f"{path}: {said}", "remove the folder of this task, and run the command again"
        ) from error


def sequences_in(found: FurtherSequences) -> Sequence[str]:
    """Return the sequences, in their order."""
    return [one.sequence for one in found.rows]
