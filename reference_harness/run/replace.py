"""Refuse to replace a run record or a submission by one with fewer scores.

Otherwise a run with `--tasks` and the `--output` of a complete run would delete hours of work.
"""

from pathlib import Path
from typing import Any

from reference_harness.errors import OptionError
from reference_harness.formats.files import NotReadable, read_json, read_regular, table_at
from reference_harness.formats.text import plural
from reference_harness.text import first_and_more

from .settings import Settings, tasks_to_run

RECORD_BYTES_MAX = 1 << 30  # largest record; one of 100 tasks has about 10 MB


def refuse_loss(option: str, path: Path, settings: Settings) -> None:
    """Raise OptionError if the file at `path` has scores that this run will not have.

    A file that is neither a run record nor a submission is ignored.
    """
    document = _json_object(path)
    regimes = _tasks_by_regime(document)
    tasks = list(dict.fromkeys(task for task_ids in regimes.values() for task in task_ids))
    running = {task.id for task in tasks_to_run(settings)}
    other_tasks = [task for task in tasks if task not in running]
    other_regimes = [name for name in regimes if name not in settings.regimes_to_run]
    if other_tasks:
        lost_scores, limiting_option = (
            _omission_text("task", other_tasks),
            "--tasks" if settings.tasks else "",
        )
    elif other_regimes:
        lost_scores, limiting_option = (
            _omission_text("regime", other_regimes),
            "--regimes" if settings.regimes else "",
        )
    elif tasks and settings.limit is not None and document.get("limit") is None:
        lost_scores, limiting_option = (
            "scores of all sequences, but this run has --limit",
            "--limit",
        )
    else:
        return
    fix = (
        f"run the same command without {limiting_option}"
        if limiting_option
        else "delete the file first"
    )
    msg = (
        f"{option} {path}: not replaced, as the file has {lost_scores}: name another file, or {fix}"
    )
    raise OptionError(msg)


def _omission_text(noun: str, omitted: list[str]) -> str:
    """Return which tasks or regimes the new file would omit."""
    return f"{plural(len(omitted), noun)} that this run omits ({first_and_more(omitted)})"


def _json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; {} if there is none."""
    try:
        return table_at(read_json(read_regular(path, RECORD_BYTES_MAX)))
    except (NotReadable, ValueError):
        return {}


def _tasks_by_regime(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return the ids of the tasks in a run record or a submission, by regime."""
    tasks_by_regime: dict[str, list[str]] = {}
    cells_by_regime, tasks = document.get("results"), document.get("tasks")
    if isinstance(cells_by_regime, dict):
        tasks_by_regime = {
            name: list(cells) for name, cells in cells_by_regime.items() if isinstance(cells, dict)
        }
    elif isinstance(tasks, dict):
        for task, record in tasks.items():
            for regime in table_at(record, "regimes"):
                tasks_by_regime.setdefault(regime, []).append(task)
    return tasks_by_regime
