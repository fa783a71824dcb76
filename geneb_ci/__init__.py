"""Checks, audits and publishes a leaderboard of DNA foundation models.

`import geneb_ci` gives functions for what the commands do, such as `check`, `build` and `compare`,
and what they take, return and raise: docs/developer/python.md. They are imported when they are
first used; `__init__.pyi` has their types.
"""

import importlib
import sys
import types
from collections.abc import Callable

__version__ = "1.0.0"

_PUBLIC = {
    "geneb_ci.api": (
        *("CheckReport", "build", "check_branch", "check_pull", "command", "compare", "fix"),
        *("next_step", "recommend", "rules", "trust", "verify"),
    ),
    "geneb_ci.audit.record.verify": ("Verification",),
    "geneb_ci.audit.rerun.prepare": ("Machine",),
    "geneb_ci.audit.sampling.beacon_source": ("BeaconSource",),
    "geneb_ci.board.board": ("SubmissionsRefused",),
    "geneb_ci.check.fixes": ("Fixed",),
    "geneb_ci.check.report": ("ProposalFacts", "UncommittedFile", "Verdict"),
    "geneb_ci.check.rule": ("Rule",),
    "geneb_ci.common.errors": (
        *("GenebError", "BadConfiguration", "BrokenInstallation", "MachineFault"),
        *("NothingChecked", "UsageProblem"),
    ),
    "geneb_ci.common.finding": ("Finding", "Severity"),
    "geneb_ci.receipt.compared": ("ComparedRegime", "ComparedScore"),
    "geneb_ci.render.results": (
        *("AuditResult", "BuiltBoard", "CommandResult", "ModelComparison", "Recommendation"),
        *("RowTrust", "Verifications"),
    ),
    "geneb_ci.sandbox.limits": ("Limits",),
    "geneb_ci.situation.table": ("NextStep",),
}
"""Module to the names that it gives to this package."""
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}
_CALLED = ("check", "audit", "board")
"""Functions of `geneb_ci.api` that share their name with a package, which is called instead."""

# Every element is a string; ruff does not look into what is unpacked.
__all__ = ["__version__", *_CALLED, *_MODULE_OF]  # noqa: PLE0604


class _CalledPackage(types.ModuleType):
    """A package that is called as the function of its name, since both are `geneb_ci.<name>`."""

    def __call__(self, *arguments: object, **options: object) -> object:
        """Call the function of `geneb_ci.api` that has the name of this package."""
        return self.__wrapped__(*arguments, **options)

    @property
    def __wrapped__(self) -> Callable[..., object]:
        """The function; `inspect.signature` and `help` follow it."""
        api = importlib.import_module("geneb_ci.api")
        function: Callable[..., object] = getattr(api, self.__name__.rpartition(".")[2])
        return function


def make_called(package: str) -> None:
    """Make a package callable as the function of its name; it stays the same package."""
    sys.modules[package].__class__ = _CalledPackage


def __getattr__(name: str) -> object:
    """Return a public name, imported now. Raise AttributeError for any other."""
    if name in _CALLED:
        return importlib.import_module(f"geneb_ci.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
