"""No faults: what is declared cannot be compared with what is computed."""

from .torch_toy import TorchToy


class OtherWord(TorchToy):
    pooling = "attention"


class OtherPlace(TorchToy):
    layer = "the encoder's"


class NoCounter(TorchToy):
    count_tokens = None  # type: ignore[assignment]  # a check then has to do without


class WideWindows(TorchToy):
    """Takes more letters than are tried, so that there is never a second window."""

    max_length, truncation = 64, "windows"
