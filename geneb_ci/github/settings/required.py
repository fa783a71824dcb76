"""The settings that a repository of a board needs, as required.toml lists them.

`geneb-ci doctor --github`, `geneb-ci init --apply` and the table of docs/maintainer/setup.md use
this list.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from geneb_ci.render.table import Table


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a repository, of an environment or of the Space."""

    id: str
    expected: str
    """The required value, in words."""
    consequence: str
    """The attack or mistake that becomes possible without the setting."""
    by_hand: str
    """Instructions to set the setting by hand."""
    read: str
    """Requests that read the setting."""
    needs: str
    """Permission on GitHub that a token needs to read the setting."""
    check: str
    """Name of the function that checks the setting."""
    apply: str = ""
    """Name of the function that sets the setting; empty if only a person can set it."""
    written: str = ""
    """Requests that write the setting."""
    required: Mapping[str, Any] = field(default_factory=dict)
    """The values that are compared and written."""
    group: str
    """Name of the group whose settings are made together."""

    @property
    def read_path(self) -> str:
        """Address on GitHub from which the setting is read, below the repository's address."""
        return self.read.removeprefix("GET ")

    @property
    def written_path(self) -> str:
        """Address on GitHub to which the setting is written, below the repository's address."""
        return self.written.partition(" ")[2]


def _listed_settings() -> Iterator[Setting]:
    """Yield the settings that required.toml lists."""
    toml_text = resources.files(__package__).joinpath("required.toml").read_text("utf-8")
    for group in tomllib.loads(toml_text)["group"]:
        settings, is_set_together = group.pop("settings"), group.pop("together", False)
        first_name = next(iter(settings))
        for setting_id, facts in settings.items():
            yield _listed_setting(
                setting_id, group | facts, first_name if is_set_together else setting_id
            )


def _listed_setting(setting_id: str, facts: dict[str, Any], group: str) -> Setting:
    """Return a setting from its keys in required.toml."""
    if facts["check"] == "json_objects_problem":
        *_, path = facts["required"]
        facts |= {"read": f"GET {path}", "written": f"PUT {path}"}
    labels = facts.get("required", {}).get("labels", ())
    by_hand = facts["by_hand"].format(expected=facts["expected"], labels=", ".join(labels))
    return Setting(**facts | {"id": setting_id, "group": group, "by_hand": by_hand})


SETTINGS = tuple(_listed_settings())
"""All settings that a board needs, in the order in which they are shown and set."""


def settings_table() -> str:
    """Return the list of settings as a Markdown table, for docs/maintainer/setup.md."""
    columns = ("setting", "expected")
    rows = [(f"`{setting.id}`", setting.expected) for setting in SETTINGS]
    return "\n".join(Table(columns, rows).markdown_lines())
