"""Runs an extractor that nobody trusts, and takes nothing from it but a matrix of numbers.

    with opened(level=2) as sandbox:                      # tried out, or SandboxUnavailable
        escapes = probe_suite(sandbox)                    # some thirty ways out
        refuse_leaks(sandbox, escapes)                    # SandboxLeaks if one got out
        spec = ExtractorSpec("MyExtractor", module=Path("submissions/extractors/mine.py"))
        values = embed_in_sandbox(sequences, spec, sandbox, Limits(seconds=600))
        facts = sandbox_facts(sandbox, escapes, Limits(seconds=600))

`docs/sandbox.md` says what is protected at which level and what is not.
"""

from geneb_ci.audit.outcome import Escape, SandboxFacts
from geneb_ci.sandbox.embed import ExtractorSpec, SandboxRun, embed_in_sandbox, run_in_sandbox
from geneb_ci.sandbox.escapes import probe_suite, refuse_leaks
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.levels import opened
from geneb_ci.sandbox.limits import Limits

__all__ = [
    "ExtractorSpec",
    "Limits",
    "SandboxRun",
    "Sandbox",
    "embed_in_sandbox",
    "opened",
    "probe_suite",
    "refuse_leaks",
    "run_in_sandbox",
    "sandbox_facts",
]


def sandbox_facts(sandbox: Sandbox, escapes: list[Escape], limits: Limits) -> SandboxFacts:
    """Return what the record says of the sandbox."""
    return SandboxFacts(
        level=sandbox.level,
        kind=sandbox.kind,
        escapes=escapes,
        gpu=bool(sandbox.devices),
        limits=limits.as_facts(),
    )
