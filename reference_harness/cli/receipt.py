"""The commands that score a receipt.

Nothing here imports NumPy at module level; see main.py.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reference_harness.formats.text import plural
from reference_harness.text import echo

from .rescore import (
    BENCHMARK_OPTION,
    DATA_OPTION,
    FILE_TYPE,
    OTHER_DRAWS_OPTION,
    OUTPUT_OPTION,
    QUIET_OPTION,
    TASKS_OPTION,
    benchmark_and_source,
    jobs_option,
    task_ids_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference_harness.formats.run_record import TaskReceipt


_FOLDER_TYPE = click.Path(path_type=Path, file_okay=False)
_SUBMISSION_OPTION = click.option(
    "--submission", type=FILE_TYPE, required=True, help="Submission whose receipt is to be scored."
)

_RECEIPT_OPTION = click.option(
    "--receipt",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Folder of the receipt's files.",
)


@click.command("receipt-cells")
@_SUBMISSION_OPTION
@_RECEIPT_OPTION
@TASKS_OPTION
@DATA_OPTION
@BENCHMARK_OPTION
@click.option(
    "--digests",
    type=_FOLDER_TYPE,
    help="Folder for digests of sequences and embeddings, which `receipt-equal` compares.",
)
@jobs_option
@click.option(
    "--strata",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the data from which an audit draws embeddings to this folder.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the labels of each task to this folder.",
)
@OTHER_DRAWS_OPTION
@OUTPUT_OPTION
@QUIET_OPTION
def receipt_cells(**options: Any) -> None:
    """Compute the scores of record of a receipt, and canonical ones if the submission has any.

    The files are not verified; compare their digests with the submission's first.
    """
    from reference_harness.engine.worker_pool import PoolLender  # NumPy: see main.py
    from reference_harness.formats.files import write_json
    from reference_harness.formats.processes import processors
    from reference_harness.receipt.cells import CellsRequest, cells

    bench, source = benchmark_and_source(options)
    document, receipt_tasks = _submission_and_receipts(
        options["submission"], task_ids_of(options["tasks"])
    )
    regimes = {*document["results"], *document.get("gaps", {})}
    workers = click.get_current_context().obj
    computed = cells(
        CellsRequest(
            benchmark=bench,
            source=source,
            folder=options["folder"],
            tasks=receipt_tasks,
            regimes=tuple(name for name in bench.regimes if name in regimes),
            workers=options["jobs"] or processors(),
            canonical=_has_canonical(document),
            strata=options["strata"],
            labels=options["labels"],
            digests=options["digests"],
            other_draws=options["other_draws"],
            of_record=document.get("run", {}).get("scorer") is not None,
        ),
        workers.lend if isinstance(workers, PoolLender) else None,
    )
    write_json(options["output"], computed.model_dump())
    if not options["quiet"]:
        task_count = plural(len(computed.tasks), "task")
        echo(f"wrote {options['output']}: {task_count} in {computed.seconds:.1f} s", err=True)


@click.command("receipt-equal")
@_SUBMISSION_OPTION
@click.option(
    "--digests",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Folder of the digests that `receipt-cells --digests` wrote.",
)
@TASKS_OPTION
@OUTPUT_OPTION
@QUIET_OPTION
def receipt_equal(**options: Any) -> None:
    """Compare the embeddings of equal sequences, over all tasks of a receipt.

    A model should give a sequence the same embedding in every task.
    """
    from reference_harness.formats.files import write_json
    from reference_harness.receipt.cells import equal_embeddings

    _, receipt_tasks = _submission_and_receipts(
        options["submission"], task_ids_of(options["tasks"])
    )
    equal = equal_embeddings(options["digests"], receipt_tasks)
    write_json(options["output"], equal.model_dump())
    if not options["quiet"]:
        embedding_count = plural(equal.rows, "embedding")
        echo(f"wrote {options['output']}: {embedding_count} compared", err=True)


@click.command("receipt-refit")
@_SUBMISSION_OPTION
@_RECEIPT_OPTION
@click.option("--task", required=True, metavar="ID", help="Id of the task.")
@DATA_OPTION
@BENCHMARK_OPTION
@click.option(
    "--further",
    type=FILE_TYPE,
    required=True,
    help="Variants of training and support sequences of the task, as `variants` writes them.",
)
@click.option(
    "--further-embeddings",
    type=FILE_TYPE,
    required=True,
    help="Embeddings of these sequences, in the same order.",
)
@OUTPUT_OPTION
@QUIET_OPTION
def receipt_refit(**options: Any) -> None:
    """Fit the probe of a task on variants of training sequences.

    Another probe is fitted on the receipt's embeddings of the same sequences. If the decisions of
    the two probes on test sequences differ much, the embeddings of training sequences may have been
    altered so that the probe scores better.
    Few-shot probes are fitted on variants of their sequences.
    """
    from reference_harness.engine.worker_pool import PoolLender  # NumPy: see main.py
    from reference_harness.formats.files import write_json
    from reference_harness.receipt.refit import refit
    from reference_harness.rescore.further_sequences import FurtherFiles

    bench, source = benchmark_and_source(options)
    _, receipt_tasks = _submission_and_receipts(options["submission"], (options["task"],))
    workers = click.get_current_context().obj
    refitted = refit(
        options["task"],
        options["folder"],
        receipt_tasks[options["task"]],
        bench,
        source,
        FurtherFiles(options["further"], options["further_embeddings"]),
        workers.lend if isinstance(workers, PoolLender) else None,
    )
    write_json(options["output"], refitted.model_dump())
    if not options["quiet"]:
        echo(f"wrote {options['output']}: {options['task']}", err=True)


@click.command("receipt-rescore")
@click.option("--record", type=FILE_TYPE, required=True, help="Run record, from `run --output`.")
@click.option(
    "--receipt",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Folder of the run's receipt; predictions.bin in it is replaced.",
)
@DATA_OPTION
@BENCHMARK_OPTION
@click.option(
    "--former", type=FILE_TYPE, help="Submission that the run wrote; --submission needs it."
)
@click.option(
    "--submission", type=FILE_TYPE, help="Submission to write, with the metadata of --former."
)
@jobs_option
@OUTPUT_OPTION
@QUIET_OPTION
def receipt_rescore(**options: Any) -> None:
    """Compute the scores of record of a run from its receipt.

    It is for a run on a machine without the scorer of record (see `scorer`). No model is needed.
    The new record differs in its scores, predictions and scorer.
    """
    from reference_harness.errors import OptionError
    from reference_harness.formats.files import dumps_tables, write_bytes, write_json
    from reference_harness.formats.processes import processors
    from reference_harness.receipt.run_rescoring import (  # NumPy: see main.py
        read_former_submission,
        rescored_run,
        submission_of_rescored,
    )
    from reference_harness.run.upgrade import benchmark_of, read_record

    if (options["former"] is None) != (options["submission"] is None):
        msg = "--submission and --former go together: pass both, or neither"
        raise OptionError(msg)
    record = read_record(options["record"])
    benchmark = benchmark_of(record, options["definition"])
    _, source = benchmark_and_source(options)
    former = read_former_submission(options["former"]) if options["former"] else None
    workers = options["jobs"] or processors()
    new_record = rescored_run(record, options["folder"], benchmark, source, workers)
    lines = [f"wrote {options['output']}: {plural(len(new_record.tasks), 'task')}"]
    if former is not None:
        document = submission_of_rescored(new_record, benchmark, former)
        write_bytes(options["submission"], dumps_tables(document))
        lines.append(f"wrote {options['submission']}: format {document['schema_version']}")
    write_json(options["output"], new_record.model_dump())
    if not options["quiet"]:
        echo("\n".join(lines), err=True)


def _has_canonical(document: "dict[str, Any]") -> bool:
    """Whether any cell of a submission has a canonical score."""
    try:
        cells = [cell for tasks in document["evidence"].values() for cell in tasks.values()]
        return any(cell.get("canonical") is not None for cell in cells)
    except (KeyError, AttributeError):
        return False  # an invalid submission, whose claims are not compared


def _submission_and_receipts(
    path: Path, task_names: tuple[str, ...]
) -> "tuple[dict[str, Any], Mapping[str, TaskReceipt]]":
    """Return a submission, and the receipts of these tasks by id. Raise OptionError."""
    from reference_harness.errors import known_name  # see main.py
    from reference_harness.receipt.cells import receipt_in

    document, tasks = receipt_in(path)
    lead = "--tasks {}: the receipt has no such task"
    exact_names = [known_name(lead.format(name), name, tuple(tasks)) for name in task_names]
    return document, {name: tasks[name] for name in exact_names}
