"""The facts of an extractor that a run needs from the process that loads the extractor."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

from reference_harness import environment
from reference_harness.embedding.batching import RowLimit
from reference_harness.formats.measurements import RunProperty

from .loader import LoadedExtractor
from .properties import properties_of


@dataclass(frozen=True, kw_only=True)
class ExtractorFacts:
    """Facts of a loaded extractor. They are pickled, so nothing large is among them."""

    path: str
    class_name: str
    sha256: str
    siblings: dict[str, str]
    description: dict[str, Any]
    """Description of the extractor.

    This field and the four before it are those of `LoadedExtractor`.
    """
    parameters: int
    """Number of parameters of the extractor's largest torch module; 0 if it has none."""
    packages: dict[str, str]
    hardware: str
    tf32: bool
    numerics: dict[str, Any]
    """The result of `environment.numerics`; empty without a torch module."""
    properties: dict[str, RunProperty]
    """Properties that were measured; empty without a torch module."""
    lock_sha256: str | None = None
    """SHA-256 of the lock file of packages next to the extractor; None without one."""
    note: str = ""
    """A warning about the weights for the user; "" if there is none."""
    exact_limits: tuple[RowLimit, ...] = field(default=(), compare=False)
    """Measured limits of rows in a batch of equal lengths, up to which no bit changes.

    Empty unless batching is exact. They may differ between machines, as no bit depends on them.
    """

    def of_model(self, model: dict[str, Any], note: str) -> Self:
        """Return the facts with the model that was loaded, and a note about its weights."""
        return replace(self, description=self.description | {"model": model}, note=note)


def facts_of(extractor: LoadedExtractor, device: str) -> ExtractorFacts:
    """Return the facts of an extractor, after it has embedded a short sequence.

    Settings of torch are read afterwards, as the extractor's code may have changed them.
    """
    packages, parameters = environment.packages_of(extractor.extractor), _parameters(extractor)
    properties = properties_of(extractor, device) if parameters else {}
    return ExtractorFacts(
        path=extractor.path,
        class_name=extractor.class_name,
        sha256=extractor.sha256,
        siblings=extractor.siblings,
        description=extractor.description,
        parameters=parameters,
        packages=packages,
        lock_sha256=extractor.lock_sha256,
        hardware=environment.hardware(device),
        tf32=environment.tf32(device),
        numerics=environment.numerics(extractor.extractor) if parameters else {},
        properties=properties,
    )


def _parameters(extractor: LoadedExtractor) -> int:
    members = vars(extractor.extractor).values() if hasattr(extractor.extractor, "__dict__") else ()
    modules = [v for v in members if callable(getattr(v, "parameters", None))]
    return max((sum(p.numel() for p in module.parameters()) for module in modules), default=0)
