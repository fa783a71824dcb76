"""What a run needs to know of an extractor, from the process that has loaded the extractor."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

from reference_harness import environment
from reference_harness.embedding.batching import RowLimit
from reference_harness.formats.measurements import RunProperty

from .loader import LoadedExtractor
from .properties import properties_of


@dataclass(frozen=True, kw_only=True)
class ExtractorFacts:
    """Facts about a loaded extractor, sent between processes and so small."""

    path: str
    """`builtin:<name>`, or the path of the module as given."""
    class_name: str
    """Name of the extractor's class."""
    sha256: str
    """Digest of the module, or of a built-in's files."""
    siblings: dict[str, str]
    """SHA-256 of each other loaded module of the same folder, by file name."""
    description: dict[str, Any]
    """What the extractor declares, `model` and `embedding` of a run record.

    This field and the four before it are those of `LoadedExtractor`.
    """
    parameters: int
    """Number of parameters of the extractor's largest torch module; 0 if it has none."""
    packages: dict[str, str]
    """Version of each package that the extractor uses, by name."""
    hardware: str
    """Name of the accelerator or processor."""
    tf32: bool
    """Whether TF32 may have been used, with its shorter mantissa."""
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

    def with_model(self, model: dict[str, Any], note: str) -> Self:
        """Return these facts with another model, and a note about its weights."""
        return replace(self, description=self.description | {"model": model}, note=note)


def facts_of(extractor: LoadedExtractor, device: str) -> ExtractorFacts:
    """Return the facts of an extractor, after it has embedded a short sequence.

    Settings of torch are read afterwards, as the extractor's code may have changed them.
    """
    packages, parameters = environment.packages_of(extractor.extractor), _parameter_count(extractor)
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


def _parameter_count(extractor: LoadedExtractor) -> int:
    """Return the number of parameters of the extractor's largest torch module; 0 without one."""
    members = vars(extractor.extractor).values() if hasattr(extractor.extractor, "__dict__") else ()
    modules = [v for v in members if callable(getattr(v, "parameters", None))]
    return max((sum(p.numel() for p in module.parameters()) for module in modules), default=0)
