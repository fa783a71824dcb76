"""What can go wrong: one tree, caught once in the command line, shown without a traceback."""

FAULTS_SHOWN = 10
"""Faults named in one message: enough to see the pattern, few enough to read."""


class HarnessError(Exception):
    """Base of every error a user can cause or cure; the message is a whole sentence."""


class OptionError(HarnessError):
    """Options that contradict each other or name nothing."""


class DataError(HarnessError):
    """Task data that cannot be used. The message names file, line and value of each fault."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(faults)
        shown = list(faults[:FAULTS_SHOWN])
        if more := len(faults) - len(shown):
            shown.append(f"and {more} more")
        super().__init__("\n".join(shown))


class EmbeddingError(HarnessError):
    """An extractor failed, or gave something that is not one finite row a sequence."""


class ProbeError(HarnessError):
    """The probe of a task could not be fitted or scored."""


class StateError(HarnessError):
    """A saved state, cache or manifest is damaged or belongs to another run."""
