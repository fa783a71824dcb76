"""The same fault in a module beside it: this text names no library that loads."""

from .missing_weights import MissingWeights


class MissingByHelper(MissingWeights):
    pass
