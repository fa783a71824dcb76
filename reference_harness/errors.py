"""Errors of the harness; the command line shows them without a traceback."""

from collections.abc import Sequence

from .formats.text import plural

FAULTS_SHOWN = 10
"""Maximum number of errors that one message lists; the number of others is added."""
NAMES_SHOWN = 30
"""Longest list of names that a message contains completely."""
NAMES_OF_MANY = 5
"""Names that a message contains of a longer list; the number of others is added."""


class HarnessError(Exception):
    """Base of every error that a user can cause or fix; its message is a sentence."""


class OptionError(HarnessError):
    """Contradictory options, or one that is invalid or refers to something that does not exist."""


def known_name(lead: str, name: str, known_names: Sequence[str]) -> str:
    """Return the known name that equals `name`, ignoring case.

    Raise the OptionError of `unknown_name` if there is none, or more than one.
    """
    if name in known_names:
        return name
    matches = [candidate for candidate in known_names if candidate.casefold() == name.casefold()]
    if len(matches) != 1:
        raise unknown_name(lead, name, known_names)
    return matches[0]


def unknown_name(lead: str, name: str, known_names: Sequence[str]) -> OptionError:
    """Return the error for an unknown name, which lists the known names and the most similar one.

    `lead` is the beginning of the message.
    """
    import difflib  # for an error alone

    name_by_folded_case = {original.casefold(): original for original in known_names}
    similar_names = difflib.get_close_matches(name.casefold(), name_by_folded_case, n=1)
    names_shown = known_names if len(known_names) <= NAMES_SHOWN else known_names[:NAMES_OF_MANY]
    listed_names = ", ".join(names_shown)
    hidden_text = (
        f" and {len(known_names) - len(names_shown)} more"
        if len(names_shown) < len(known_names)
        else ""
    )
    hint = f"; did you mean {name_by_folded_case[similar_names[0]]!r}?" if similar_names else ""
    return OptionError(f"{lead}: expected one of {listed_names}{hidden_text}{hint}")


class DataError(HarnessError):
    """Invalid task data. The message names file, line and value of each error."""

    def __init__(self, faults: list[str]) -> None:
        """Store the errors, and make the message from the first `FAULTS_SHOWN`."""
        self.faults = tuple(faults)
        listed_faults = list(faults[:FAULTS_SHOWN])
        if hidden_count := len(faults) - len(listed_faults):
            listed_faults.append(f"and {hidden_count} more")
        super().__init__("\n".join(listed_faults))

    def __reduce__(self) -> tuple[type["DataError"], tuple[list[str]]]:
        """Support pickling, so that a worker process can raise it."""
        return type(self), (list(self.faults),)


class EmbeddingError(HarnessError):
    """An extractor failed, or did not return one finite embedding per sequence."""


class ProbeError(HarnessError):
    """The probe of a task could not be fitted or scored."""


class StateError(HarnessError):
    """A saved state, cache or manifest is damaged or belongs to another run."""


class LostEmbeddingsError(StateError):
    """Embeddings in the cache are missing or damaged and must be computed again."""


class OutOfMemoryError(ProbeError):
    """The memory allowed for the probe of a task was not enough."""


class ScorerError(HarnessError):
    """This process cannot compute scores of record; the message names what differs."""


class WorkerDiedError(ProbeError):
    """A worker process was killed, so every task that waited for it failed."""


class FailedTasksError(HarnessError):
    """Some tasks of a run failed; those that finished are kept for `--resume`."""

    def __init__(self, failed: dict[str, str], finished: int, folder: str) -> None:
        """Make the message; `failed` has messages by task id, `folder` the finished tasks."""
        self.has_finished_work = finished > 0
        total = len(failed) + finished
        lines = [f"{len(failed)} of {total} task{'' if total == 1 else 's'} failed:"]
        lines += [f"  {task_id}: {message}" for task_id, message in failed.items()]
        lines.append(
            f"no record and no submission is written; {plural(finished, 'finished task')} "
            f"{'is' if finished == 1 else 'are'} kept in {folder}: repeat the command with "
            "--resume to run only the failed tasks"
            if finished
            else "no record and no submission is written: correct the errors and run the command "
            "again"
        )
        super().__init__("\n".join(lines))


class FailedRunsError(HarnessError):
    """Some runs of one command failed; the others have written their records."""

    def __init__(self, failed: dict[str, str], finished: int, *, has_partial_runs: bool) -> None:
        """Make the message; `failed` has messages by output file.

        `has_partial_runs` is whether a failed run has finished tasks, so that `--resume` helps.
        """
        self.has_finished_work = finished > 0 or has_partial_runs
        total = len(failed) + finished
        lines = [f"{len(failed)} of {total} runs failed:"]
        lines += [f"  {output}: {message}" for output, message in failed.items()]
        super().__init__("\n".join(lines))
