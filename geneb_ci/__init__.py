"""Checks, audits and publishes a leaderboard of DNA foundation models.

`import geneb_ci` gives the functions behind the commands, such as `check`, `build` and `compare`,
with the types of their arguments and results and their exceptions (docs/developer/python.md). Each
name is imported when it is first used; `__init__.pyi` declares the types.
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
"""Public names of this package, by the module that defines them."""
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}
_CALLABLE_PACKAGES = ("check", "audit", "board")
"""Packages that share their name with a function of `geneb_ci.api`; a call of the package calls
the function."""

# Every element is a string; ruff does not look into what is unpacked.
__all__ = ["__version__", *_CALLABLE_PACKAGES, *_MODULE_OF]  # noqa: PLE0604


class _CallablePackage(types.ModuleType):
    """A package that is also a function: a call of `geneb_ci.check` calls `geneb_ci.api.check`."""

    def __call__(self, *arguments: object, **options: object) -> object:
        """Call the function of `geneb_ci.api` that has the name of this package."""
        return self.__wrapped__(*arguments, **options)

    @property
    def __wrapped__(self) -> Callable[..., object]:
        """The function of `geneb_ci.api`; `inspect.signature` and `help` describe it."""
        api = importlib.import_module("geneb_ci.api")
        function: Callable[..., object] = getattr(api, self.__name__.rpartition(".")[2])
        return function


def make_callable(package: str) -> None:
    """Make a package callable: a call calls the function of `geneb_ci.api` with its name.

    The modules of the package stay importable.
    """
    sys.modules[package].__class__ = _CallablePackage


def __getattr__(name: str) -> object:
    """Import and return the object with a public name. Raises AttributeError for another name."""
    if name in _CALLABLE_PACKAGES:
        return importlib.import_module(f"geneb_ci.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
