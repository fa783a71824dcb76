"""The code and weights of a rerun, named by the run, the maintainer or the model registry."""

from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import ValidationError

from geneb_ci.audit.code_digest import (
    BUILTIN_PREFIX,
    ExtractorFolder,
    built_in_extractor,
    extractor_code,
)
from geneb_ci.audit.commitment import ExtractorCode, Weights
from geneb_ci.audit.errors import AuditRefused, EntryIncomplete, EntryMissing
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.hosts import PUBLIC_ADDRESS
from geneb_ci.models.entry import ReadEntry, WeightsSource, addresses
from reference_harness.formats.submission import Run, Submission, SubmissionByEntry, SubmissionV11
from reference_harness.formats.text import quoted


@dataclass(frozen=True)
class DeclaredRun:
    """Code and weights of a run of format 1.0, which the maintainer declares by options."""

    extractor: str
    """Path of the extractor's module and name of its class, as `PATH:CLASS`."""
    model: str | None
    """Repository of the weights on the Hub; None for a method without weights."""
    revision: str | None = None
    """Git commit of the repository of the weights."""
    weights: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each weight file whose digest is known, by name."""
    options: dict[str, str] = field(default_factory=dict)
    """Keyword arguments of the extractor's constructor, as text."""


class RunSources(NamedTuple):
    """The code and weights of a rerun, and the registry entry that describes them."""

    extractor: ExtractorCode
    weights: Weights
    entry: str | None = None
    """SHA-256 of the registry entry; None if the submission or options describe code and
    weights."""


def sources_of(
    submission: Submission,
    declared: DeclaredRun | None,
    folder: ExtractorFolder | None,
    read_entry: ReadEntry | None,
) -> RunSources:
    """Return the code and weights that submission, declared run or model registry describe.

    Raises UsageProblem and AuditRefused where these contradict each other or are incomplete.
    """
    if isinstance(submission, SubmissionV11):
        if declared is not None:
            raise UsageProblem(
                "--extractor is given, but the submission says which extractor and weights ran",
                "leave out --extractor, --option, --model, --revision and --weights",
            )
        run = submission.run
        if run.harness.dirty:
            raise AuditRefused(
                "the harness had local changes during this run, so nobody can repeat the run",
                "ask for a run from a clean checkout or an installed package",
            )
        code = run.extractor
        return RunSources(
            extractor_code(folder, code.path, code.class_name, code.sha256, code.options),
            _run_weights(run, read_entry),
        )
    if isinstance(submission, SubmissionByEntry):
        _refuse_other_entry(submission, declared, read_entry)
    if declared is None:
        return _entry_sources(submission.model_id, read_entry, folder)
    path, colon, class_name = declared.extractor.rpartition(":")
    if not colon or not path.endswith(".py") or not class_name.isidentifier():
        raise UsageProblem(
            f"--extractor {declared.extractor!r} is not PATH:CLASS",
            "pass for example submissions/extractors/mine.py:MyExtractor",
        )
    if declared.model is None:
        weights = Weights(kind="none", location="", revision=None, files={})
    else:
        weights = _declared_weights(declared)
    return RunSources(extractor_code(folder, path, class_name, None, declared.options), weights)


def _refuse_other_entry(
    submission: SubmissionByEntry, declared: DeclaredRun | None, read_entry: ReadEntry | None
) -> None:
    """Refuse options for a submission by an entry, and an entry that has changed since."""
    if declared is not None:
        raise UsageProblem(
            "the run is described twice: by options, and by the model registry's entry that the "
            "submission names",
            "leave out --extractor, --option, --model, --revision and --weights",
        )
    digest = submission.registry_entry.sha256
    if read_entry is not None and read_entry.sha256 != digest:
        raise AuditRefused(
            f"the model registry's entry of {submission.model_id} is not the one that the "
            f"submission names: its sha256 is {read_entry.sha256[:16]}..., "
            f"expected {digest[:16]}...",
            "let the submission name the present entry of the registry (`geneb-ci upgrade FILE "
            "--output FILE`), and audit the result",
        )


def _entry_sources(
    model_id: str, read_entry: ReadEntry | None, folder: ExtractorFolder | None
) -> RunSources:
    """Return the code and weights that the entry of a model in the model registry describes.

    Raises EntryMissing, EntryIncomplete, or AuditRefused for an entry that pins no file.
    """
    if read_entry is None:
        raise EntryMissing(
            "format 1.0 does not say which extractor and weights ran, and the model registry has "
            f"no entry for {model_id}",
            "add an entry (docs/maintainer/models.md), or pass --extractor PATH:CLASS with --model "
            "REPO, --revision COMMIT and --weights NAME=SHA256 for each file; if the extractor has "
            "no weights, pass --no-weights in place of these three",
        )
    run, weights = read_entry.entry.run, read_entry.entry.weights
    if run is None or run.extractor is None or weights is None:
        omission = (
            run.missing if run is not None and run.missing else "the entry names no extractor"
        )
        raise EntryIncomplete(
            f"the entry of {model_id} in the model registry does not say how to run it: {omission}",
            "complete the entry (docs/maintainer/models.md), or declare the run: --extractor "
            "PATH:CLASS",
        )
    if weights.kind != "none" and not weights.files:
        raise AuditRefused(
            f"the entry of {model_id} in the model registry pins no file",
            "add the sha256 of each file under [weights.files]",
        )
    if run.extractor.startswith(BUILTIN_PREFIX):
        path, class_name, sha256 = built_in_extractor(run.extractor)
    else:
        path, _, class_name = run.extractor.rpartition(":")
        sha256 = None
    code = extractor_code(folder, path, class_name, sha256, read_entry.entry.options)
    return RunSources(code, registered_weights(weights), read_entry.sha256)


def registered_weights(weights: WeightsSource) -> Weights:
    """Return the weights of an entry of the model registry, each file with its address."""
    return Weights(
        kind=weights.kind,
        location=weights.location,
        revision=weights.revision,
        files=dict(sorted(weights.files.items())),
        addresses=addresses(weights),
    )


def _declared_weights(declared: DeclaredRun) -> Weights:
    if declared.revision is None or not declared.weights:
        raise _unpinned_weights_error()
    try:
        return Weights(
            kind="huggingface",
            location=str(declared.model),
            revision=declared.revision,
            files=dict(sorted(declared.weights.items())),
        )
    except ValidationError as error:
        raise UsageProblem(
            f"--revision {declared.revision!r} or a digest of --weights is malformed",
            "pass a revision of 40 hex digits and digests of 64, in lower case",
        ) from error


def _run_weights(run: Run, read_entry: ReadEntry | None) -> Weights:
    """Return the weights of a run; for weights in a local folder, their published copy.

    The model registry names that copy. Raises AuditRefused when no other machine can load the same
    weights.
    """
    model = run.model
    is_pinned = model.revision is not None if model.kind == "huggingface" else bool(model.weights)
    if model.kind != "none" and not is_pinned:
        raise _unpinned_weights_error()
    if model.kind == "local":
        registered_source = read_entry.entry.weights if read_entry is not None else None
        if (
            registered_source is not None
            and model.weights.items() <= registered_source.files.items()
        ):
            return registered_weights(registered_source)
        raise AuditRefused(
            "the weights are only on the contributor's machine",
            "ask for a public copy and add it to the model registry (docs/maintainer/models.md), "
            "with the same digests",
        )
    files = dict(sorted(model.weights.items()))
    address_by_file = {}
    if model.kind == "url":
        if not PUBLIC_ADDRESS.fullmatch(model.location):
            raise AuditRefused(
                f"the weights are at {quoted(model.location)}, expected an https address of a "
                "public server, without a query",
                "ask for such an address, or for a repository on the Hub",
            )
        address_by_file = addresses(WeightsSource(kind="url", location=model.location, files=files))
    return Weights(
        kind=model.kind,
        location=model.location,
        revision=model.revision,
        files=files,
        addresses=address_by_file,
    )


def _unpinned_weights_error() -> AuditRefused:
    """Return the error of a run whose weights may change, since no revision is named."""
    return AuditRefused(
        "the weights are not pinned, so a rerun could load others",
        "ask for the 40-hex commit of the model repository and the sha256 of each weight file",
    )
