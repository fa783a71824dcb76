"""Errors of the harness; the command line shows them without a traceback."""

from collections.abc import Sequence

FAULTS_SHOWN = 10
"""Errors that one message lists; the rest is counted."""
NAMES_SHOWN = 30
"""Names of a list that one message shows whole."""
NAMES_OF_MANY = 5
"""Names of a longer list that a message shows; the rest is counted."""


class HarnessError(Exception):
    """Base of every error that a user can cause or fix; the message is a sentence."""


class OptionError(HarnessError):
    """Contradictory options, or an option that names something that does not exist."""


def known_name(lead: str, name: str, known_names: Sequence[str]) -> str:
    """Return the known name that is meant by `name`: letter case does not matter.

    Raises OptionError, as `unknown_name` returns it.
    """
    if name in known_names:
        return name
    matches = [candidate for candidate in known_names if candidate.casefold() == name.casefold()]
    if len(matches) != 1:
        raise unknown_name(lead, name, known_names)
    return matches[0]


def unknown_name(lead: str, name: str, known_names: Sequence[str]) -> OptionError:
    """Return the error for a name that does not exist: what there is, and which is the nearest.

    `lead` begins the message.
    """
    import difflib  # for an error alone

    folded = {original.casefold(): original for original in known_names}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    some = known_names if len(known_names) <= NAMES_SHOWN else known_names[:NAMES_OF_MANY]
    listed_names = ", ".join(some)
    more = f" and {len(known_names) - len(some)} more" if len(some) < len(known_names) else ""
    hint = f"; did you mean {folded[close[0]]!r}?" if close else ""
    return OptionError(f"{lead}: expected one of {listed_names}{more}{hint}")


class DataError(HarnessError):
    """Invalid task data. The message names file, line and value of each error."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(faults)
        listed_faults = list(faults[:FAULTS_SHOWN])
        if more := len(faults) - len(listed_faults):
            listed_faults.append(f"and {more} more")
        super().__init__("\n".join(listed_faults))

    def __reduce__(self) -> tuple[type["DataError"], tuple[list[str]]]:
        """Come back from a worker process as it was raised."""
        return type(self), (list(self.faults),)


class EmbeddingError(HarnessError):
    """An extractor failed, or did not return one finite embedding per sequence."""


class ProbeError(HarnessError):
    """The probe of a task could not be fitted or scored."""


class StateError(HarnessError):
    """A saved state, cache or manifest is damaged or belongs to another run."""


class LostEmbeddingsError(StateError):
    """Embeddings that were in the cache are missing or damaged: they have to be computed again."""


class OutOfMemoryError(ProbeError):
    """The memory that the probe of a task may take was not enough for it."""


class ScorerError(HarnessError):
    """This process cannot compute scores of record; the message says what it has instead."""


class WorkerDiedError(ProbeError):
    """A worker process was killed, and with it every task that waited for one."""


class FailedTasksError(HarnessError):
    """Some tasks of a run failed; those that finished are kept for `--resume`."""

    def __init__(self, failed: dict[str, str], finished: int, folder: str) -> None:
        """Take task to message, the number of finished tasks and the folder that keeps them."""
        self.finished = finished
        total = len(failed) + finished
        lines = [f"{len(failed)} of {total} task{'' if total == 1 else 's'} failed:"]
        lines += [f"  {task_id}: {message}" for task_id, message in failed.items()]
        lines.append(
            f"no record and no submission is written; {finished} finished, kept in {folder}: "
            "repeat the command with --resume to run only those that failed"
        )
        super().__init__("\n".join(lines))


class FailedRunsError(HarnessError):
    """Some runs of one call failed; the others have written their records."""

    def __init__(self, failed: dict[str, str], finished: int, *, others_began: bool) -> None:
        """Take output to message, the number of finished runs, and whether others began."""
        self.finished = finished + others_began
        total = len(failed) + finished
        lines = [f"{len(failed)} of {total} runs failed:"]
        lines += [f"  {output}: {message}" for output, message in failed.items()]
        super().__init__("\n".join(lines))
