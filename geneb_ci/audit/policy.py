"""The audit policy of a repository: table `[audit]` of policy.toml."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from geneb_ci.common.config import Layout, naming
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.regular import NotReadable, lies_there, read_regular
from geneb_ci.common.shipped import shipped
from geneb_ci.common.types import Hex64, Name, Positive, StrictModel, first_error

FILE = "policy.toml"
# The shipped one has 700 bytes. Parsing is never slow at this size, whatever it holds.
BYTES_MAX = 20_000
_RESTORE = "restore the file from the main branch, or fix it: the shipped one has every setting"


class AuditPolicy(StrictModel):
    """The table `[audit]`."""

    drawn: Positive
    """k: tasks of the guaranteed sample; all, where there are fewer."""
    stratified: bool
    regimes: Annotated[list[Name], Field(min_length=1)]
    minimum_drawn: Positive
    """Drawn tasks that a row needs to be `verified`."""
    minimum_level: Literal[1, 2, 3, 4]
    """Lowest sandbox level at which an agreeing audit counts; level 0 never does."""
    canonical: bool = False
    """Whether only cells with a canonical score count towards `verified` and `reproduced`; format
    1.0 has none. The shipped policy says true."""
    aborts: Positive = 3
    """Runs of one method aborted in a row, without a record between them, that dispute its row. A
    machine fails by chance once or twice; an extractor that fails whenever a raised task is drawn
    does so each time."""
    fallback_keys: Annotated[list[Hex64], Field(default_factory=list)]
    """SHA-256 of the raw bytes of each fallback key, published before it is used."""
    spent_keys: Annotated[list[Hex64], Field(default_factory=list)]
    """Keys revealed since: earlier draws under them stay valid, no new one is made."""

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.minimum_drawn > self.drawn:
            raise ValueError(
                f"minimum_drawn {self.minimum_drawn} is more than the {self.drawn} that are drawn: "
                "no audit could verify a row"
            )
        if len(set(self.regimes)) < len(self.regimes):
            raise ValueError(f"regimes {self.regimes} lists one twice")
        return self


def audit_policy(layout: Layout) -> AuditPolicy:
    """Return the audit policy of a place: its own, or the shipped one.

    Raises BadConfiguration, which names the file and the setting, when it cannot be used.
    """
    own = layout.policy / FILE if layout.policy is not None else None
    with naming(layout, "policy"):
        return load_policy(own if own is not None and lies_there(own) else shipped("policy", FILE))


def load_policy(path: Path) -> AuditPolicy:
    """Read the policy from a file. Raises BadConfiguration when it cannot be used."""
    try:
        table = tomllib.loads(read_regular(path, BYTES_MAX).decode("utf-8"))["audit"]
        return AuditPolicy.model_validate(table)
    except ValidationError as error:
        what = first_error(error, "the table")
        raise BadConfiguration(f"{path}: [audit] {what}", _RESTORE) from error
    except NotReadable as error:
        raise BadConfiguration(f"{path}: [audit]: {error.reason}", _RESTORE) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadConfiguration(f"{path}: [audit] cannot be read: {error}", _RESTORE) from error
