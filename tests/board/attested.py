"""Which group of fields a published value is in, by its path."""

import functools
from collections.abc import Sequence

from geneb_ci.audit.trust.attestation import FIELD_GROUPS, FieldGroup


@functools.cache
def group_of(path: str) -> FieldGroup | None:
    """Return the group of a field of the board by its path; None for one that is in no group."""
    names = path.split("/")
    return next(
        (group for group in FIELD_GROUPS if any(_covers(form, names) for form in group.fields)),
        None,
    )


def _covers(form: str, names: Sequence[str]) -> bool:
    parts = form.split("/")
    if parts[-1] == "**":
        parts, names = parts[:-1], names[: len(parts) - 1]
    return len(parts) == len(names) and all(
        part in {"*", name} for part, name in zip(parts, names, strict=True)
    )
