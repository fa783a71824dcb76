"""Rules on how the scores were computed: benchmark, harness, versions, trust level."""

from collections.abc import Iterator

from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, Severity
from reference_harness.formats.files import line_ends_of
from reference_harness.formats.submission_terms import ENTRY_MEMBER
from reference_harness.formats.text import quoted


def self_claimed_level(context: Context) -> Iterator[Fault]:
    """Report a provenance other than self-reported, unless the file is listed as official."""
    claim = context.member("meta", "provenance")
    is_changed_official = context.model_id in context.policy.official and claim == "official"
    if not isinstance(claim, str) or context.is_official or is_changed_official:
        return
    if claim != "self-reported":
        yield Fault(
            SELF_CLAIMED_LEVEL.id,
            ("meta", "provenance"),
            f"provenance is {quoted(claim)}",
            quoted(claim),
            '"self-reported"',
        )


SELF_CLAIMED_LEVEL = Rule(
    id="self-claimed-level",
    severity=Severity.ERROR,
    what="The submission claims a trust level.",
    why=(
        "Trust levels are computed from evidence: signed audits, or the digest of an official "
        "file. What the file itself claims does not count."
    ),
    fix='Write "provenance": "self-reported". To have the row audited, ask a maintainer.',
    check=self_claimed_level,
)


def changed_official_file(context: Context) -> Iterator[Fault]:
    """Report a file that has the id of an official row, but another digest."""
    expected = context.policy.official.get(context.model_id)
    digest = context.document.origin
    if expected is not None and digest and digest != expected:
        ends = line_ends_of(context.document.text.encode("utf-8", "surrogatepass"), expected)
        yield Fault(
            CHANGED_OFFICIAL_FILE.id,
            ("model_id",),
            f"{quoted(context.model_id)} is an official row, but this file differs from the "
            f"official file{f', but only in the line ends: expected {ends}' if ends else ''}",
            f"sha256 {digest}",
            f"sha256 {expected}",
            fix=_LINE_ENDS_FIX if ends else "",
        )


_LINE_ENDS_FIX = (
    "Git converts line ends in this clone: run `git config core.autocrlf false`, then `git "
    "checkout main -- FILE`."
)
CHANGED_OFFICIAL_FILE = Rule(
    id="changed-official-file",
    severity=Severity.ERROR,
    what="The bytes of an official file were changed.",
    why=(
        "Official rows are the benchmark authors' own, identified by the digest of the file; any "
        "change makes it another file."
    ),
    fix=(
        "Restore the file from the main branch. Submit a rerun of the same model as a new row "
        "with another model_id."
    ),
    check=changed_official_file,
)


def wrong_upgrade(context: Context) -> Iterator[Fault]:
    """Report an upgraded file that differs from what `geneb-ci upgrade` writes."""
    entry, document = context.table(ENTRY_MEMBER), context.document
    if not entry or document.faults:
        return
    path, digest = (ENTRY_MEMBER, "submission_sha256"), document.origin
    if digest == document.sha256:
        text = f"{quoted(ENTRY_MEMBER)} is not written as by `geneb-ci upgrade`, so the file of "
        text += "format 1.0 cannot be restored"
        yield Fault(WRONG_UPGRADE.id, path[:1], text, "other text", "the text as upgraded")
    elif entry.get(path[1]) != digest:
        actual = quoted(entry.get(path[1]))
        text = (
            f"{quoted(path[1])} is not the sha256 of the file that was upgraded, which is {digest}"
        )
        yield Fault(WRONG_UPGRADE.id, path, text, actual, quoted(digest))
    current_entry = context.upgraded_entry
    if current_entry.get("sha256") != entry.get("sha256"):
        return
    for member in sorted({*current_entry, *entry} - {path[1]}):
        if current_entry.get(member) != entry.get(member):
            stated_text, current_text = quoted(entry.get(member)), quoted(current_entry.get(member))
            text = f"{quoted(member)} differs from the model's entry in the model registry"
            yield Fault(WRONG_UPGRADE.id, (ENTRY_MEMBER, member), text, stated_text, current_text)


WRONG_UPGRADE = Rule(
    id="wrong-upgrade",
    severity=Severity.ERROR,
    what="An upgraded file differs from what `geneb-ci upgrade` writes.",
    why=(
        "Such a file combines a file of format 1.0, byte for byte, with an entry of the model "
        "registry: it must add and change nothing else."
    ),
    fix=(
        "Upgrade the file of format 1.0 again: `geneb-ci upgrade OLD --output NEW`. The main "
        "branch and `geneb-ci upgrade NEW --undo` have that file."
    ),
    check=wrong_upgrade,
)


def changed_entry(context: Context) -> Iterator[Fault]:
    """Report an upgraded file whose model now has another entry in the model registry, or none."""
    claimed, current_digest = (
        context.text(ENTRY_MEMBER, "sha256"),
        context.upgraded_entry.get("sha256"),
    )
    if claimed and claimed != current_digest:
        verb = "now has another" if current_digest else "has no"
        yield Fault(
            CHANGED_ENTRY.id,
            (ENTRY_MEMBER, "sha256"),
            f"the model registry {verb} entry for {quoted(context.model_id)}",
            quoted(claimed),
            quoted(current_digest) if current_digest else "an entry",
        )


CHANGED_ENTRY = Rule(
    id="changed-entry",
    severity=Severity.WARNING,
    what="The model's entry in the model registry has changed since the file was upgraded.",
    why="An audit would rerun the model by the current entry, which the file contradicts.",
    fix=(
        "Upgrade the file again: `geneb-ci upgrade FILE --output FILE`. The scores stay; audits of "
        "the previous file no longer count."
    ),
    check=changed_entry,
)


def unknown_harness_version(context: Context) -> Iterator[Fault]:
    """Report a harness_version other than the benchmark's, ignoring letter case."""
    version = context.text("harness_version")
    expected = context.benchmark.harness_version
    if version and version.casefold() != expected.casefold():
        yield Fault(
            UNKNOWN_HARNESS_VERSION.id,
            ("harness_version",),
            f"harness_version is {quoted(version)}",
            quoted(version),
            f'"{expected}" (in any letter case)',
        )


UNKNOWN_HARNESS_VERSION = Rule(
    id="unknown-harness-version",
    severity=Severity.ERROR,
    what="The harness version is not the one that benchmark.json requires.",
    why="Another harness may compute other scores for the same model, which are not comparable.",
    fix="Run the evaluation with the harness version that benchmark.json names.",
    check=unknown_harness_version,
)


def wrong_benchmark(context: Context) -> Iterator[Fault]:
    """Report a run whose benchmark is not that of the board."""
    name = context.text("run", "benchmark", "name")
    if name and name != context.benchmark.name:
        yield Fault(
            WRONG_BENCHMARK.id,
            ("run", "benchmark", "name"),
            f"the run used the benchmark {quoted(name)}; this board is {context.benchmark.name}",
            quoted(name),
            f'"{context.benchmark.name}"',
        )


WRONG_BENCHMARK = Rule(
    id="wrong-benchmark",
    severity=Severity.ERROR,
    what="The run used another benchmark.",
    why="Scores of a practice run or of other tasks do not belong on this board.",
    fix="Run the harness with the real data: `geneb-harness run --data DIR`.",
    check=wrong_benchmark,
)


def practice_run(context: Context) -> Iterator[Fault]:
    """Report a file outside a repository that is checked against the practice benchmark."""
    name = context.text("run", "benchmark", "name")
    if name == context.benchmark.name and context.is_practice:
        yield Fault(
            PRACTICE_RUN.id,
            ("run", "benchmark", "name"),
            f"the file was checked against {name}, the synthetic practice benchmark",
            name,
            "the benchmark of the board",
        )


PRACTICE_RUN = Rule(
    id="practice-run",
    severity=Severity.NOTE,
    what="The run measured the synthetic practice benchmark.",
    why="It shows that extractor and harness work; its scores say nothing about real sequences.",
    fix="For a submission, run the harness with the real data: `geneb-harness run --data DIR`.",
    check=practice_run,
)


def wrong_dataset_revision(context: Context) -> Iterator[Fault]:
    """Report a run whose task data do not have the pinned revision."""
    revision = context.text("run", "dataset", "revision")
    pinned = context.benchmark.dataset.revision
    if revision and revision != pinned and not context.is_reported("run", "dataset", "revision"):
        yield Fault(
            WRONG_DATASET_REVISION.id,
            ("run", "dataset", "revision"),
            f"the run used revision {quoted(revision)} of the task data",
            quoted(revision),
            f'"{pinned}"',
        )


WRONG_DATASET_REVISION = Rule(
    id="wrong-dataset-revision",
    severity=Severity.ERROR,
    what="The run did not use the pinned task data.",
    why="The scores of a model depend on the sequences and the split.",
    fix="Fetch the pinned data and run again: `geneb-ci data pull`.",
    check=wrong_dataset_revision,
)


def modified_harness(context: Context) -> Iterator[Fault]:
    """Report a run from a working tree with uncommitted changes."""
    if context.member("run", "harness", "dirty") is True:
        yield Fault(
            MODIFIED_HARNESS.id,
            ("run", "harness", "dirty"),
            "the harness was run with uncommitted changes",
            "true",
            "false",
        )


MODIFIED_HARNESS = Rule(
    id="modified-harness",
    severity=Severity.WARNING,
    what="The harness was run with uncommitted changes.",
    why="Nobody else has these changes, so nobody can repeat the run.",
    fix="Run again from a clean checkout or an installed package.",
    check=modified_harness,
)


def no_run_details(context: Context) -> Iterator[Fault]:
    """Report a contributed file of format 1.0, also if it was upgraded by the model registry."""
    is_upgraded = ENTRY_MEMBER in context.root
    if (context.text("schema_version") == "1.0" or is_upgraded) and not context.is_official:
        yield Fault(
            NO_RUN_DETAILS.id,
            (ENTRY_MEMBER if is_upgraded else "schema_version",),
            "the run is described by the model registry, not by the submitter"
            if is_upgraded
            else "format 1.0 has no run details: this row can only be audited manually",
            "an entry" if is_upgraded else '"1.0"',
            "run details" if is_upgraded else '"1.1"',
        )


NO_RUN_DETAILS = Rule(
    id="no-run-details",
    severity=Severity.NOTE,
    what="Format 1.0 does not record how the scores were computed.",
    why="Scores depend on revision, layer, pooling and versions; a rerun would have to guess them.",
    fix="Write format 1.1 with `geneb-harness run --submission FILE`; format 1.0 stays valid.",
    check=no_run_details,
)
