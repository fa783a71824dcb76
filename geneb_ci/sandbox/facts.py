"""Facts of a sandbox for the audit record."""

from typing import Annotated

from pydantic import Field

from geneb_ci.common.types import Name, StrictModel
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.limits import Limits


class Escape(StrictModel):
    """One attempt of the probe suite to leave the sandbox."""

    name: Name
    refused: bool
    detail: str


class SandboxFacts(StrictModel):
    """Where the extractor ran."""

    level: Annotated[int, Field(ge=0, le=4)]
    kind: Name
    """bubblewrap, landlock, gvisor, or none."""
    escapes: list[Escape]
    """The probe suite, run in the same sandbox before the audit; empty at level 0 alone."""
    gpu: bool
    limits: dict[str, int]
    """Limits by name, with their unit in the name, such as memory_mib; total_seconds and
    token_budget are missing in older records. The latter is the padded tokens of a batch."""


def sandbox_facts(
    sandbox: Sandbox, escapes: list[Escape], limits: Limits, token_budget: int
) -> SandboxFacts:
    """Return the facts of a sandbox for the audit record; `token_budget` in padded tokens."""
    return SandboxFacts(
        level=sandbox.level,
        kind=sandbox.kind,
        escapes=escapes,
        gpu=bool(sandbox.devices),
        limits=limits.as_facts() | {"token_budget": token_budget},
    )
