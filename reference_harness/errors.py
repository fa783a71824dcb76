"""Errors of the harness; the command line shows them without a traceback."""

FAULTS_SHOWN = 10
"""Errors that one message lists; the rest is counted."""


class HarnessError(Exception):
    """Base of every error that a user can cause or fix; the message is a sentence."""


class OptionError(HarnessError):
    """Contradictory options, or an option that names something that does not exist."""


class DataError(HarnessError):
    """Invalid task data. The message names file, line and value of each error."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(faults)
        shown = list(faults[:FAULTS_SHOWN])
        if more := len(faults) - len(shown):
            shown.append(f"and {more} more")
        super().__init__("\n".join(shown))


class EmbeddingError(HarnessError):
    """An extractor failed, or did not return one finite row per sequence."""


class ProbeError(HarnessError):
    """The probe of a task could not be fitted or scored."""


class StateError(HarnessError):
    """A saved state, cache or manifest is damaged or belongs to another run."""
