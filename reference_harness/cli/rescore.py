"""The commands that an audit runs: write sequences without labels, score their embeddings.

Nothing here imports NumPy at module level; see main.py.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reference_harness.formats.old_options import earlier_name
from reference_harness.formats.submission_terms import DTYPES
from reference_harness.formats.text import plural
from reference_harness.text import echo

if TYPE_CHECKING:
    from reference_harness.data.task_folder import Source
    from reference_harness.formats.benchmark import Benchmark
    from reference_harness.rescore.further_sequences import FurtherFiles

FILE_TYPE = click.Path(path_type=Path, dir_okay=False)
TASKS_OPTION = click.option(
    "--tasks", multiple=True, required=True, metavar="ID[,ID]", help="Tasks; repeatable."
)
DATA_OPTION = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of task data; default: the synthetic GENEB-mini.",
)
BENCHMARK_OPTION = click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path),
    help="Benchmark definition; default with --data: GENEB.",
)
OUTPUT_OPTION = click.option("--output", type=FILE_TYPE, required=True, help="File to write.")
QUIET_OPTION = click.option("--quiet", is_flag=True, help="Print only errors.")
OTHER_DRAWS_OPTION = click.option(
    "--other-draws",
    metavar="TEXT",
    help="Also fit few-shot probes on other sequences, which this text decides.",
)
_COPIES, _COPIES_MAX = 16, 1000


def jobs_option(command: Any) -> Any:
    """Add the option `--jobs`, the number of processes, and its earlier name to a command."""
    earlier_option = click.option(
        "--workers",
        "earlier__workers",
        type=click.UNPROCESSED,
        **earlier_name("--workers", "--jobs", "jobs"),
    )
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes that fit probes; default: one per CPU.",
    )(earlier_option(command))


@click.command()
@TASKS_OPTION
@DATA_OPTION
@BENCHMARK_OPTION
@OUTPUT_OPTION
@QUIET_OPTION
def sequences(**options: Any) -> None:
    """Write the distinct sequences of tasks, without labels.

    The file has one sequence per line; train and test of all tasks are together, sorted by digest,
    so that the order reveals neither split nor label.
    """
    from reference_harness.formats.files import write_bytes
    from reference_harness.rescore.scoring import distinct_sequences

    bench, source = benchmark_and_source(options)
    lines = distinct_sequences(bench, source, task_ids_of(options["tasks"]))
    write_bytes(options["output"], *(f"{sequence}\n".encode() for sequence in lines))
    if not options["quiet"]:
        echo(f"wrote {options['output']}: {plural(len(lines), 'sequence')}", err=True)


@click.command()
@TASKS_OPTION
@click.option(
    "--regimes", default="", metavar="NAME[,NAME]", help="Score these regimes; default: all."
)
@click.option(
    "--sequences",
    "lines",
    type=FILE_TYPE,
    required=True,
    help="Sequences, as `sequences` writes them.",
)
@click.option(
    "--embeddings",
    type=FILE_TYPE,
    required=True,
    help="Matrix in .npy format; row i is the embedding of line i.",
)
@click.option(
    "--noise",
    "dtype",
    type=click.Choice(DTYPES, case_sensitive=False),
    required=True,
    help="Dtype in which the embeddings were computed, whose rounding is the noise of the copies.",
)
@click.option(
    "--copies",
    type=click.IntRange(min=2, max=_COPIES_MAX),
    default=_COPIES,
    show_default=True,
    help="Number of jittered copies in the full regime; the others have twice as many.",
)
@click.option("--seed", type=click.IntRange(min=0), required=True, help="Seed of the noise.")
@DATA_OPTION
@BENCHMARK_OPTION
@click.option(
    "--rounded/--unrounded",
    "is_rounded",
    default=True,
    show_default=True,
    help="Whether to round features to float16, as the scorer of record does.",
)
@click.option(
    "--further",
    type=FILE_TYPE,
    help="Further sequences, as `variants` writes them; only with a single task.",
)
@click.option(
    "--further-embeddings", type=FILE_TYPE, help="Embeddings of these sequences, in the same order."
)
@OTHER_DRAWS_OPTION
@jobs_option
@OUTPUT_OPTION
@QUIET_OPTION
def rescore(**options: Any) -> None:
    """Score embeddings and jittered copies of them, with which an audit compares the claims."""
    from reference_harness.engine.worker_pool import PoolLender
    from reference_harness.formats.files import write_json
    from reference_harness.formats.processes import processors
    from reference_harness.rescore.scoring import RescoreRequest
    from reference_harness.rescore.scoring import rescore as rescore_embeddings
    from reference_harness.run import progress  # NumPy: see main.py

    bench, source = benchmark_and_source(options)
    request = RescoreRequest(
        benchmark=bench,
        source=source,
        tasks=task_ids_of(options["tasks"]),
        regimes=chosen_names(options["regimes"], tuple(bench.regimes), "--regimes"),
        sequences=options["lines"],
        embeddings=options["embeddings"],
        dtype=options["dtype"],
        seed=options["seed"],
        copies=options["copies"],
        is_rounded=options["is_rounded"],
        further=_further_files(options),
        other_draws=options["other_draws"],
        workers=options["jobs"] or processors(),
    )
    workers = click.get_current_context().obj
    lend_workers = workers.lend if isinstance(workers, PoolLender) else None
    with progress.listener(len(request.tasks), quiet=options["quiet"]) as listener:
        rescored = rescore_embeddings(request, listener, lend_workers)
    write_json(options["output"], rescored.model_dump())
    if not options["quiet"]:
        task_count = plural(len(rescored.tasks), "task")
        echo(f"wrote {options['output']}: {task_count} in {rescored.seconds:.1f} s", err=True)


def _further_files(options: dict[str, Any]) -> "FurtherFiles | None":
    """Return the files of further sequences, if the options name any.

    Raise OptionError if only one of the two files is named, or several tasks are.
    """
    from reference_harness.errors import OptionError  # NumPy: see main.py
    from reference_harness.rescore.further_sequences import FurtherFiles

    sequence_file, embedding_file = options["further"], options["further_embeddings"]
    if sequence_file is None and embedding_file is None:
        return None
    if sequence_file is None or embedding_file is None or len(task_ids_of(options["tasks"])) > 1:
        msg = (
            "--further and --further-embeddings go together, with one task in --tasks: pass "
            "all three"
        )
        raise OptionError(msg)
    return FurtherFiles(sequence_file, embedding_file)


@click.command()
@click.option("--task", required=True, metavar="ID", help="Id of the task.")
@click.option("--seed", required=True, help="Text that determines sequences and variants.")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    required=True,
    help="Number of test sequences to vary, and as many training sequences; at most all.",
)
@click.option("--reverse", is_flag=True, help="Also write reverse complements.")
@click.option(
    "--support", is_flag=True, help="Also vary each sequence on which a few-shot probe is fitted."
)
@DATA_OPTION
@BENCHMARK_OPTION
@OUTPUT_OPTION
@QUIET_OPTION
def variants(**options: Any) -> None:
    """Write label-preserving variants of a task's sequences.

    The same seed gives the same variants. An audit embeds them together with the sequences.
    """
    from reference_harness.embedding.variants import support_variants, variants_of
    from reference_harness.probe.decisions import few_shot_draws, support_indices
    from reference_harness.rescore.further_sequences import write_variants  # NumPy: see main.py
    from reference_harness.rescore.scoring import load_task

    bench, source = benchmark_and_source(options)
    data = load_task(bench, source, options["task"])
    seed, reverse, protocol = options["seed"], options["reverse"], bench.protocol
    variant_sequences = variants_of(data, seed, options["rows"], reverse=reverse)
    if options["support"]:
        draws = few_shot_draws(data.train.labels, protocol.few_shot_k, protocol.seeds, seed)
        variant_sequences += support_variants(data, seed, support_indices(draws), reverse=reverse)
    write_variants(options["output"], variant_sequences)
    if not options["quiet"]:
        echo(f"wrote {options['output']}: {plural(len(variant_sequences), 'variant')}", err=True)


@click.command()
@click.option("--seed", type=click.IntRange(min=0), required=True, help="Seed of the sequences.")
@click.option("--tasks", multiple=True, metavar="ID[,ID]", help="Tasks; default: all.")
@OUTPUT_OPTION
@QUIET_OPTION
def fresh(**options: Any) -> None:
    """Write fresh labelled sequences of GENEB-mini, generated with another seed.

    The output is a CSV file with the columns task, label and sequence, for `geneb-ci audit fresh`.
    """
    from reference_harness import mini  # NumPy: see main.py
    from reference_harness.errors import OptionError, known_name
    from reference_harness.formats.files import write_bytes

    task_by_id = {task.id: task for task in mini.TASKS}
    task_ids = task_ids_of(options["tasks"]) if options["tasks"] else tuple(task_by_id)
    lead = "task {!r}: GENEB-mini has no such task"
    exact_ids = [known_name(lead.format(name), name, tuple(task_by_id)) for name in task_ids]
    if options["seed"] == mini.SEED:
        msg = f"--seed {mini.SEED} generates the public sequences: pass another seed"
        raise OptionError(msg)
    lines = ["task,label,sequence"]
    for task_id in exact_ids:
        task_data = mini.generate(task_by_id[task_id], options["seed"])
        lines += [
            f"{task_id},{label},{sequence}"
            for split in (task_data.train, task_data.test)
            for sequence, label in zip(split.sequences, split.labels.tolist(), strict=True)
        ]
    write_bytes(options["output"], "\n".join([*lines, ""]).encode())
    if not options["quiet"]:
        echo(f"wrote {options['output']}: {plural(len(lines) - 1, 'sequence')}", err=True)


def benchmark_and_source(options: dict[str, Any]) -> "tuple[Benchmark, Source]":
    """Return the benchmark to which the options refer, and the source of its tasks.

    Raise OptionError for a definition without data.
    """
    from reference_harness.data import benchmark, task_folder  # NumPy: see main.py
    from reference_harness.errors import OptionError

    folder, definition = options["data"], options["definition"]
    if definition and not folder:
        msg = "--benchmark needs task data: add --data DIR"
        raise OptionError(msg)
    if not folder:
        return benchmark.mini(), task_folder.MiniSource()
    bench = benchmark.load(definition) if definition else benchmark.geneb()
    return bench, task_folder.Folder(folder, bench)


def task_ids_of(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the distinct task ids in lists separated by commas, in the given order.

    Raise OptionError if there is none.
    """
    from reference_harness.errors import OptionError

    ids = tuple(dict.fromkeys(n for word in arguments for n in word.split(",") if n.strip()))
    if not ids:
        msg = "--tasks names no task, expected at least one id"
        raise OptionError(msg)
    return tuple(name.strip() for name in ids)


def chosen_names(listed: str, known_names: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Return the known names in a comma-separated text, in the known order; all if it has none.

    Raise OptionError, which names the option, for an unknown name.
    """
    from reference_harness.errors import known_name

    requested = [name.strip() for name in listed.split(",") if name.strip()]
    chosen = {known_name(f"{option} {name!r}", name, known_names) for name in requested}
    return tuple(name for name in known_names if not chosen or name in chosen)
