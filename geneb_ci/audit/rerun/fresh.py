"""Fresh sets: labelled sequences that a maintainer commits to before an audit, released after it.

A set is a CSV file with the columns task, label and sequence. The commitment is the SHA-256 of a
salt and the bytes of the file. The salt, which is secret until the release, prevents others from
testing whether a sequence is in the set.
"""

import csv
import hashlib
import io
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field

from geneb_ci.audit.compare.embedding_outcome import AnyOutcome
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.scoring import write_sequences
from geneb_ci.common.errors import NothingChecked, unwritable
from geneb_ci.harness.process import HarnessProcess, TaskSource
from reference_harness.formats.base import Hex64, Name, Positive, StrictModel, parsed
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.text import plural, quoted

FRESH_SET_COLUMNS = ("task", "label", "sequence")
"""Columns of the CSV file of a fresh set."""
FRESH_SET_BYTES_MAX = 1 << 28
"""Largest size of the file of a fresh set, in bytes: 500,000 sequences of 500 letters."""
SEQUENCES_PER_TASK_MAX = 100_000
"""Largest number of fresh sequences of a task: no task of the benchmark has more sequences."""
NUCLEOTIDE_LETTERS = frozenset("ACGTURYSWKMBDHVN")
"""Letters of nucleotides, and of the IUPAC codes for several nucleotides."""
LABEL_DIGITS_MAX = 9
"""Largest number of digits of a label."""
SALT_BYTES = 32
"""Number of random bytes of a salt, without which the digest of a set could be guessed."""
SALT_SUFFIX = ".salt"
"""Ending of the name of the file with the salt, after the name of the fresh set's file."""
_M = TypeVar("_M", bound=StrictModel)
_COMPLEMENT_BY_LETTER = str.maketrans("ACGTURYSWKMBDHVN", "TGCAAYRSWMKVHDBN")


class FreshSequence(NamedTuple):
    """One labelled sequence of a fresh set."""

    task: str
    label: int
    sequence: str


class FreshCommitment(StrictModel):
    """The statement about a fresh set that is published before an audit."""

    schema_version: Literal["1.0"]
    benchmark: Hex64
    """Digest of the benchmark definition."""
    tasks: Annotated[dict[Name, Positive], Field(min_length=1)]
    """Number of sequences of each task."""
    sha256: Hex64
    """Digest of the salt, followed by the bytes of the set."""


class FreshRelease(StrictModel):
    """The statement with a fresh set and its salt that is published after an audit."""

    schema_version: Literal["1.0"]
    salt: Hex64
    """Random bytes that precede the file in the committed digest."""
    content: str
    """The committed CSV file."""


class FreshSet(NamedTuple):
    """The sequences of a fresh set and its digest."""

    sha256: str
    """SHA-256 of the salt, followed by the bytes of the set."""
    sequences: tuple[FreshSequence, ...]


def parse_fresh_set(content: bytes, file: str, benchmark: Benchmark) -> tuple[FreshSequence, ...]:
    """Return the sequences in the CSV file of a fresh set.

    Raises NothingChecked, which names the line, unless each line is a labelled sequence of a task
    of the benchmark, and no sequence occurs twice.
    """
    fix = (
        f"write a CSV file with the header {','.join(FRESH_SET_COLUMNS)}, one labelled sequence a "
        "line"
    )
    try:
        csv_text = content.decode("ascii")
        lines = list(csv.reader(io.StringIO(csv_text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise NothingChecked(f"{file}: not a CSV file in ASCII: {error}", fix) from error
    if not lines or tuple(lines[0]) != FRESH_SET_COLUMNS:
        header = ",".join(lines[0]) if lines else "nothing"
        raise NothingChecked(
            f"{file}: begins with {quoted(header)}, expected {','.join(FRESH_SET_COLUMNS)}", fix
        )
    if len(lines) == 1:
        raise NothingChecked(f"{file}: contains no sequence", fix)
    fresh_by_letters: dict[str, FreshSequence] = {}
    for number, fields in enumerate(lines[1:], 2):
        fresh, fault = _sequence_in(fields, benchmark)
        if fresh is None or fresh.sequence.upper() in fresh_by_letters:
            objection = fault or "the sequence is in the set twice"
            raise NothingChecked(f"{file}: line {number}: {objection}", fix)
        fresh_by_letters[fresh.sequence.upper()] = fresh
    sequences = tuple(fresh_by_letters.values())
    for task, count in Counter(sequence.task for sequence in sequences).items():
        if count > SEQUENCES_PER_TASK_MAX:
            raise NothingChecked(
                f"{file}: task {task} has {count} sequences, expected at most "
                f"{SEQUENCES_PER_TASK_MAX}",
                "leave some out: docs/research/adversary.md says what each size detects",
            )
    return sequences


def _sequence_in(fields: list[str], benchmark: Benchmark) -> tuple[FreshSequence | None, str]:
    """Return the sequence of a line and "", or None and the error in the line."""
    if len(fields) != len(FRESH_SET_COLUMNS):
        return None, f"{plural(len(fields), 'value')}, expected {len(FRESH_SET_COLUMNS)}"
    task, label, sequence = fields
    if task not in benchmark.by_id:
        return None, f"{benchmark.name} has no task {quoted(task)}"
    if not label.isdigit() or len(label) > LABEL_DIGITS_MAX:
        return None, f"label {quoted(label)}, expected a class number"
    if not sequence or set(sequence.upper()) - NUCLEOTIDE_LETTERS:
        return None, f"sequence {quoted(sequence[:40])}, expected letters of nucleotides"
    return FreshSequence(task, int(label), sequence), ""


def salted_digest(salt: bytes, content: bytes) -> str:
    """Return the SHA-256 of the salt followed by the fresh set, which a commitment publishes."""
    return hashlib.sha256(salt + content).hexdigest()


def commit_to_fresh_set(path: Path, benchmark: Benchmark, source: TaskSource) -> FreshCommitment:
    """Write a salt beside a fresh set, readable by the owner alone, and return the commitment.

    Raises NothingChecked for an invalid set, AuditRefused for a sequence of the public data or an
    existing salt, UsageProblem when the salt cannot be written.
    """
    content = _read_file(path, "pass the CSV file with the fresh sequences")
    sequences = parse_fresh_set(content, str(path), benchmark)
    refuse_public_sequences(sequences, source)
    salt_path = path.with_name(path.name + SALT_SUFFIX)
    salt = secrets.token_bytes(SALT_BYTES)
    try:
        with os.fdopen(
            os.open(salt_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w"
        ) as file:
            file.write(salt.hex() + "\n")
    except FileExistsError as error:
        raise AuditRefused(
            f"{salt_path}: exists already, so this set was committed to before",
            "use the commitment that was made then: with another commitment, a maintainer could "
            "choose between two sets",
        ) from error
    except OSError as error:
        raise unwritable(
            str(salt_path), error, "copy the set to a folder that you can write to"
        ) from error
    return FreshCommitment(
        schema_version="1.0",
        benchmark=benchmark.sha256,
        tasks=dict(Counter(sequence.task for sequence in sequences)),
        sha256=salted_digest(salt, content),
    )


def refuse_public_sequences(sequences: Iterable[FreshSequence], source: TaskSource) -> None:
    """Raise AuditRefused if a sequence, or its reverse complement, is in the task's public data."""
    sequences_by_task: dict[str, list[FreshSequence]] = {}
    for sequence in sequences:
        sequences_by_task.setdefault(sequence.task, []).append(sequence)
    with tempfile.TemporaryDirectory() as folder, HarnessProcess() as harness:
        file = write_sequences(list(sequences_by_task), source, Path(folder), harness)
        public_sequences = {line.upper() for line in file.read_text(encoding="ascii").splitlines()}
    for task, task_sequences in sequences_by_task.items():
        known_sequences = [
            fresh.sequence
            for fresh in task_sequences
            if _both_strands(fresh.sequence) & public_sequences
        ]
        if known_sequences:
            raise AuditRefused(
                f"task {task}: {plural(len(known_sequences), 'sequence')} of the set are in the "
                f"public data, the first being {quoted(known_sequences[0][:60])}",
                "remove them: only new sequences show whether the extractor remembers labels",
            )


def _both_strands(sequence: str) -> set[str]:
    """Return a sequence and its reverse complement, in capital letters."""
    upper = sequence.upper()
    return {upper, upper.translate(_COMPLEMENT_BY_LETTER)[::-1]}


def fresh_release(path: Path) -> FreshRelease:
    """Return the fresh set and its salt, to publish after the audit.

    Raises NothingChecked if either cannot be read.
    """
    content = _read_file(path, "pass the CSV file with the fresh sequences")
    return FreshRelease(
        schema_version="1.0", salt=_read_salt(path), content=content.decode("ascii")
    )


def read_fresh_set(path: Path, commitment: FreshCommitment, benchmark: Benchmark) -> FreshSet:
    """Read a fresh set that is not yet released, and compare it with its commitment.

    Raises NothingChecked if it cannot be read, AuditRefused if it is not the committed set.
    """
    return check_release(fresh_release(path), commitment, benchmark, str(path))


def check_release(
    release: FreshRelease, commitment: FreshCommitment, benchmark: Benchmark, file: str
) -> FreshSet:
    """Return a released fresh set after comparing it with its commitment.

    Raises AuditRefused if digest, benchmark or numbers differ, NothingChecked for an invalid set.
    """
    content = release.content.encode()
    digest = salted_digest(bytes.fromhex(release.salt), content)
    if digest != commitment.sha256:
        raise AuditRefused(
            f"{file}: set and salt have the digest {digest[:16]}..., expected "
            f"{commitment.sha256[:16]}... of the commitment",
            "pass a set, a salt and a commitment that belong together",
        )
    if commitment.benchmark != benchmark.sha256:
        raise AuditRefused(
            f"the commitment is for the benchmark {commitment.benchmark[:16]}..., the board has "
            f"{benchmark.sha256[:16]}...",
            "commit to the set again, for the current benchmark",
        )
    sequences = parse_fresh_set(content, file, benchmark)
    counts = dict(Counter(sequence.task for sequence in sequences))
    if counts != commitment.tasks:
        raise AuditRefused(
            f"{file}: has {_counts_text(counts)}, the commitment states "
            f"{_counts_text(commitment.tasks)}",
            "commit to the set again: this commitment states numbers that its set does not have",
        )
    return FreshSet(commitment.sha256, sequences)


def _counts_text(counts: Mapping[str, int]) -> str:
    """Return the number of sequences of each task as text."""
    return ", ".join(f"{count} sequences of {task}" for task, count in counts.items())


def require_used_set(outcome: AnyOutcome, fresh_set: FreshSet) -> None:
    """Raise AuditRefused if the audit of a record used another fresh set than this one."""
    fresh = outcome.fresh
    if fresh is None:
        raise AuditRefused(
            "the audit of this record used no fresh set",
            "leave out --record, or pass the record of the audit that used this set",
        )
    if fresh.commitment != fresh_set.sha256:
        raise AuditRefused(
            f"the audit of this record used the fresh set with the digest "
            f"{fresh.commitment[:16]}..., expected {fresh_set.sha256[:16]}...",
            "pass the set that the audit used, or the record of the audit that used this set",
        )
    counts = Counter(sequence.task for sequence in fresh_set.sequences)
    for audited in outcome.tasks:
        scored_count = fresh.tasks[audited.task].fresh.rows if audited.task in fresh.tasks else 0
        if scored_count != counts[audited.task]:
            raise AuditRefused(
                f"task {audited.task}: the record scored {scored_count} fresh sequences, expected "
                f"the {counts[audited.task]} of the set",
                "do not trust this record: an audit scores every fresh sequence of its tasks",
            )


def read_fresh_commitment(path: Path) -> FreshCommitment:
    """Read the commitment to a fresh set. Raises NothingChecked, which names file and member."""
    return _read_statement(path, FreshCommitment, "geneb-ci audit fresh commit")


def read_release(path: Path) -> FreshRelease:
    """Read a released fresh set. Raises NothingChecked, which names the file and the member."""
    return _read_statement(path, FreshRelease, "geneb-ci audit fresh release")


def _read_statement(path: Path, model_class: type[_M], command: str) -> _M:
    fix = f"pass a file that `{command}` wrote"
    try:
        return parsed(model_class, _read_file(path, fix))
    except NotReadable as error:
        raise NothingChecked(f"{path}: {error.reason}", fix) from error


def _read_salt(path: Path) -> str:
    """Return the salt of the fresh set in a file, in hex digits."""
    salt_path = path.with_name(path.name + SALT_SUFFIX)
    fix = f"restore {salt_path}, which `geneb-ci audit fresh commit` wrote beside the set"
    salt = _read_file(salt_path, fix).decode("ascii", "replace").strip()
    if len(salt) != 2 * SALT_BYTES or set(salt) - set("0123456789abcdef"):
        raise NothingChecked(f"{salt_path}: not a salt of {2 * SALT_BYTES} hex digits", fix)
    return salt


def _read_file(path: Path, fix: str) -> bytes:
    """Return the bytes of a file. Raises NothingChecked, with `fix`."""
    try:
        return read_regular(path, FRESH_SET_BYTES_MAX)
    except NotReadable as error:
        raise NothingChecked(f"{path}: {error.reason}", fix) from error
