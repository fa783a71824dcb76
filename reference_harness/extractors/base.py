"""The interface of every extractor: upstream's, so that the community's modules run unchanged."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from reference_harness.errors import HarnessError

UNDECLARED = "undeclared"
"""The value of a property that the extractor's author did not declare."""


class ExtractorError(HarnessError, ValueError):
    """An extractor cannot be loaded, or cannot embed the given sequences.

    The message says what was found, what was expected and what to do next.
    """


class UnknownOptionError(ExtractorError):
    """The extractor's constructor has no parameter with the name of an option."""


class SignatureError(ExtractorError):
    """A class cannot be called with the arguments that the harness passes."""


class LetterCounts(NamedTuple):
    """Numbers of letters and tokens that a built-in extractor reads from some sequences."""

    given: int
    """Number of letters of the sequences."""
    read: int
    """Number of letters in tokens of the vocabulary."""
    cut: int
    """Number of sequences of which an end is not read."""
    tokens: int
    """Number of tokens of letters, without special tokens."""
    unknown: int
    """Number of these that are the unknown token."""


class BaseEmbeddingExtractor(ABC):
    """Turns sequences into embeddings of one fixed width.

    A subclass may declare the properties below as class or instance attributes; a property that it
    does not declare is recorded as "undeclared". The choice of the layer alone changes scores by
    0.03 to 0.04, so two extractors of one model are comparable only if both declare them:

    - `layer`: "last", "none" or a number as text;
    - `pooling`: "mean", "cls", "last", "max" or a few words;
    - `max_length`: in tokens, including special tokens; None if there is no limit;
    - `truncation`: "none", "right", "left" or "windows";
    - `dtype`: "float32", "float16", "bfloat16" or "float64", the type in which the model computes;
    - `source`: a mapping with `kind` ("huggingface", "url", "local", "none"), `location` and
      `revision` (40 hex digits, or None);
    - `scale`: "none", or "unit": the harness then divides each embedding by the
      root mean square of its values. The probe's penalty depends on the scale, so scores do, too;
    - `case`: "sensitive" if the model distinguishes upper and lower case.
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
        """Return the embeddings of n sequences, (n, d), row i for sequence i, all finite.

        `batch_size` may limit memory and must not change the result. For a sequence that has no
        embedding, such as an empty one, either return a finite row or raise a `ValueError`.
        """
