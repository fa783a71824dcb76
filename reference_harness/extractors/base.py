"""The interface every extractor has: upstream's, so that the community's modules run unchanged."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from reference_harness.errors import HarnessError

UNDECLARED = "undeclared"
"""The value of a property that the extractor's author did not declare."""


class ExtractorError(HarnessError, ValueError):
    """An extractor cannot be loaded, or cannot embed what it was given.

    The message says what was found, what was expected and what to do next.
    """


class UnknownOptionError(ExtractorError):
    """An option names nothing that the constructor of the extractor takes."""


class SignatureError(ExtractorError):
    """A class cannot be called as the harness calls it, whatever it computes."""


class Reading(NamedTuple):
    """The letters and tokens of some sequences, together, as a built-in extractor counts them."""

    given: int
    read: int
    """Letters that are in a token the model knows."""
    cut: int
    """Sequences of which an end is not read."""
    tokens: int
    """Tokens that are the sequences' own."""
    unknown: int
    """Those among them that stand for what is not in the vocabulary."""


class BaseEmbeddingExtractor(ABC):
    """Turns sequences into embeddings of one fixed width.

    A subclass may declare, as class or instance attributes, how it does so; what is missing is
    recorded as "undeclared". A layer sweep moves scores by 0.03 to 0.04, so two extractors of one
    model are comparable only when both say:

    - `layer`: "last", "none" or a number as text;
    - `pooling`: "mean", "cls", "last", "max" or a few words;
    - `max_length`: in tokens, special tokens included; None when any length is read;
    - `truncation`: "none", "right", "left" or "windows";
    - `dtype`: "float32", "float16", "bfloat16" or "float64", in which the model computes;
    - `source`: a mapping with `kind` ("huggingface", "url", "local", "none"), `location` and
      `revision` (40 hex digits, or None);
    - `scale`: "none" for embeddings as they are, or "unit": the harness then divides each by the
      root mean square of its values. The probe's penalty depends on the scale, so scores do, too;
    - `case`: "sensitive" when upper and lower case mean different things to the model.
    """

    layer: str
    pooling: str
    max_length: int | None
    truncation: str
    dtype: str
    source: Mapping[str, Any]
    case: str
    scale: str

    def __init__(self, name_model: str, device: str = "cpu") -> None:
        self.name_model = name_model
        self.device = device

    @abstractmethod
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        """Embed n sequences: an array of shape (n, d), row i for sequence i, all finite.

        `batch_size` is a hint about memory and may not change the result. A sequence that has no
        embedding, such as an empty one, either gives a finite row or raises a `ValueError`.
        """
