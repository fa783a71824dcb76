"""The properties of extractors, in the order in which they are checked."""

from collections.abc import Callable
from dataclasses import dataclass

from . import (
    declared_settings,
    full_check,
    invariance,
    length,
    letters,
    letters_and_strands,
    model_loading,
    opened_files,
    output,
    static_check,
)
from .device_and_network import NetworkBlock, device
from .subject import Subject

CheckOutcome = str | tuple[str, float | None]
"""A sentence, perhaps with the largest distance between embeddings that should be equal."""


@dataclass(frozen=True)
class Property:
    """One property that an extractor must have."""

    slug: str
    """Name of the property on the command line."""
    sentence: str
    """The property, in one sentence."""
    check: Callable[[Subject], CheckOutcome] | None
    """Function that returns an outcome, or raises BrokenError or UnverifiedError; None for the
    static check."""
    is_offline: bool = False
    """Whether the check runs in a separate process with the network blocked."""
    is_full: bool = False
    """Whether the property is tried only by the full check, in a separate process."""
    needs_load: bool = True
    """Whether the check is skipped if the extractor cannot be loaded."""


def _no_network(subject: Subject) -> str:
    """Check that neither loading nor embedding needs a network."""
    return NetworkBlock().check(subject)


LOADS = "loads"
"""Slug of the property without which most others cannot be checked."""

PROPERTIES = (
    Property(static_check.SLUG, "Every name the module uses is defined.", None),
    Property(LOADS, "The extractor can be built, and embeds a sequence.", output.loads),
    Property("device", "The model runs on the requested device.", device, needs_load=False),
    Property("weights", "No weight is missing or unused.", model_loading.loaded_weights),
    Property("own-code", "No code of the checkpoint is ignored.", model_loading.own_code),
    Property("one-row-a-sequence", "n sequences have n embeddings.", output.one_row_a_sequence),
    Property("floating-dtype", "Embeddings are floating-point numbers.", output.floating_dtype),
    Property("finite", "Embeddings are finite, and differ.", output.finite),
    Property("batch-size", "The batch size changes nothing.", invariance.batch_size),
    Property("batch-neighbours", "Neighbours change nothing.", invariance.batch_neighbours),
    Property("padding", "A longer neighbour changes nothing.", invariance.padding),
    Property("order", "Embeddings follow their sequences.", invariance.order),
    Property("repeatable-calls", "Two calls agree.", invariance.repeatable_calls),
    Property("repeatable-loads", "Two loads agree.", invariance.repeatable_loads),
    Property("evaluation-mode", "No dropout is active.", invariance.evaluation_mode),
    Property("maximum-length", "The declared length is the real one.", length.maximum_length),
    Property("letters-read", "Every letter is read.", letters_and_strands.letters_read),
    Property("strands", "One strand is read, or both are declared.", letters_and_strands.strands),
    Property("letter-case", "Lower case is read as upper case.", letters.letter_case),
    Property("unknown-letters", "N and IUPAC letters give embeddings.", letters.unknown_letters),
    Property(
        "empty-and-short",
        "Short sequences give finite embeddings or an error.",
        letters.empty_and_short,
    ),
    Property(
        "layer-and-pooling",
        "Layer and pooling are as declared.",
        declared_settings.layer_and_pooling,
    ),
    Property(
        "computed-dtype",
        "The model computes in the declared dtype.",
        declared_settings.computed_dtype,
    ),
    Property("files-read", "Only weights and packages are opened.", opened_files.files_read),
    Property("no-network", "Nothing needs a network.", _no_network, is_offline=True),
    Property(
        "run-batches", "The run's batches change nothing.", full_check.run_batches, is_full=True
    ),
    Property(
        "mixed-batches",
        "Batches of mixed lengths change nothing.",
        full_check.mixed_batches,
        is_full=True,
    ),
    Property(
        "no-drift", "Thousands of embeddings change nothing.", full_check.no_drift, is_full=True
    ),
    Property(
        "files-read-later",
        "Thousands of embeddings open no other file.",
        opened_files.files_read,
        is_full=True,
    ),
)
QUICK = tuple(p for p in PROPERTIES if not p.is_full)
"""The properties of the quick check."""
BY_SLUG = {p.slug: p for p in PROPERTIES}
"""The properties by slug."""
