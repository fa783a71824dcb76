"""The commands `geneb-harness data`: download, verify and audit task data."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reference_harness.formats.files import dumps
from reference_harness.formats.text import plural
from reference_harness.text import echo

if TYPE_CHECKING:
    from reference_harness.data.statistics import TaskStatistics

_FOLDER_TYPE = click.Path(path_type=Path, file_okay=False)
_BENCHMARK_OPTION = click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path),
    help="Benchmark definition; default: that of the board you are in, or GENEB.",
)


@click.group()
def data() -> None:
    """Download, verify and audit task data."""


@data.command()
@click.argument("folder", type=_FOLDER_TYPE)
@click.option("--tasks", multiple=True, metavar="ID", help="Download only these tasks; repeatable.")
@click.option("--revision", help="Commit, 40 hex digits; default: the pinned one.")
@click.option("--endpoint", help="URL of the Hub; default: huggingface.co.")
@_BENCHMARK_OPTION
def pull(
    folder: Path,
    tasks: tuple[str, ...],
    revision: str | None,
    endpoint: str | None,
    definition: Path | None,
) -> None:
    """Download the pinned task data into FOLDER and write a manifest."""
    from reference_harness.data import benchmark, download  # NumPy: see main.py

    bench = benchmark.load(definition) if definition else benchmark.default()
    pulled_manifest = download.pull(
        bench, folder, revision=revision, tasks=tasks, endpoint=endpoint
    )
    task_count, files = (
        plural(len(pulled_manifest.tasks), "task"),
        plural(len(pulled_manifest.files), "file"),
    )
    echo(f"{folder}: {task_count}, {files} at {pulled_manifest.revision}")


@data.command()
@click.argument("folder", type=_FOLDER_TYPE)
@_BENCHMARK_OPTION
def verify(folder: Path, definition: Path | None) -> None:
    """Verify the files of FOLDER against its manifest."""
    from reference_harness.data import benchmark, download  # NumPy: see main.py

    bench = benchmark.load(definition) if definition else benchmark.default()
    verified = download.verify(bench, folder)
    echo(f"{folder}: {plural(len(verified.tasks), 'task')} verified, revision {verified.revision}")


@data.command()
@click.argument("folder", type=_FOLDER_TYPE)
@_BENCHMARK_OPTION
def manifest(folder: Path, definition: Path | None) -> None:
    """Print the manifest of a folder without writing it.

    It is the manifest that FOLDER would have at the pinned revision.
    """
    from reference_harness.data import benchmark, download  # NumPy: see main.py

    bench = benchmark.load(definition) if definition else benchmark.default()
    manifest = download.manifest_of(bench, folder, bench.dataset.revision)
    click.echo(dumps(manifest.model_dump()).decode(), nl=False)


@data.command()
@click.argument("folder", type=_FOLDER_TYPE)
@click.option("--name", help="Name of the benchmark; default: that of FOLDER.")
def define(folder: Path, name: str | None) -> None:
    """Make a benchmark of your own task files.

    FOLDER has <task_id>.csv with the columns text,label,split (train or test), or
    tasks/<task_id>/train.csv and test.csv with text,label. Writes benchmark.json and manifest.json
    into it, in which you can edit names and categories.
    """
    from reference_harness.data.define import define as write  # NumPy: see main.py

    path, bench = write(folder, name)
    echo(f"wrote {path}: {plural(len(bench.tasks), 'task')}, revision {bench.dataset.revision}")
    echo(f"run it: geneb-harness run --data {folder} --benchmark {path} --output record.json")


@data.command()
@click.argument("folder", type=_FOLDER_TYPE)
@click.argument("out", type=_FOLDER_TYPE)
@_BENCHMARK_OPTION
def stage(folder: Path, out: Path, definition: Path | None) -> None:
    """Write task data in both layouts, ready to push.

    The tasks of FOLDER are written to OUT, with a card.
    """
    from reference_harness.data import benchmark  # NumPy: see main.py
    from reference_harness.data.task_repository import write_repository as write

    bench = benchmark.load(definition) if definition else benchmark.default()
    staged = write(bench, folder, out)
    echo(
        f"wrote {out}: {plural(len(staged), 'task')}, each as train.csv and test.csv and as one "
        "file"
    )


@data.command()
@click.argument("folder", type=_FOLDER_TYPE, required=False)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"], case_sensitive=False),
    default="text",
    show_default=True,
    help="What to print.",
)
@_BENCHMARK_OPTION
def audit(folder: Path | None, output_format: str, definition: Path | None) -> None:
    """Report duplicates, leakage, balance and lengths.

    Leakage is the overlap of train and test. Without FOLDER, GENEB-mini is audited.
    """
    from reference_harness.data import benchmark, statistics  # NumPy: see main.py
    from reference_harness.data.task_folder import Folder, MiniSource

    bench = benchmark.load(definition) if definition else (
        benchmark.default() if folder else benchmark.mini()
    )  # fmt: skip
    source = Folder(folder, bench) if folder else MiniSource()
    present = [task for task in bench.tasks if task.id in source.available()]
    audits = [statistics.task_statistics(source.load(task)) for task in present]
    if output_format == "json":
        click.echo(dumps([task_audit.as_json() for task_audit in audits]).decode(), nl=False)
        return
    for task_audit in audits:
        echo(_statistics_lines(task_audit))
    unclean_count = sum(not task_audit.clean for task_audit in audits)
    verb = "has" if len(audits) == 1 else "have"
    echo(f"{unclean_count} of {plural(len(audits), 'task')} {verb} duplicate sequences or leakage")


def _statistics_lines(audit: "TaskStatistics") -> str:
    """Return the statistics of one task as lines for the terminal."""
    splits = (audit.train, audit.test)
    train_counts, test_counts = (_class_counts_text(split.classes) for split in splits)
    lengths = f"{min(s.length_min for s in splits)} to {max(s.length_max for s in splits)} bp"
    return (
        f"{audit.task}\n"
        f"  labels: train {train_counts}, test {test_counts}; "
        f"majority accuracy: {audit.test.majority:.3f}; {lengths}\n"
        f"  duplicate sequences: train {audit.train.duplicates}, test {audit.test.duplicates}; "
        f"with contradictory labels: train {audit.train.contradictions}, "
        f"test {audit.test.contradictions}\n  "
        f"test sequences also in training: {audit.overlap}, {audit.overlap_other_label} of them "
        f"with another label; as reverse complement: {audit.overlap_reverse}"
    )


def _class_counts_text(classes: dict[str, int]) -> str:
    """Return the number of sequences of each class, as "label:number label:number"."""
    return " ".join(f"{label}:{count}" for label, count in classes.items())
