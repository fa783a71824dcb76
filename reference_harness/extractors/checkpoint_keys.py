"""Patterns of weights that may be missing from a file or unused in it, with reasons."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

ALLOWED_UNUSED = (
    (r"^(lm_head|cls|score|classifier|qa_outputs)\.", "a task's head, after the hidden states"),
    (r"(^|\.)pooler\.", "computed after the hidden states"),
    (r"(^|\.)(position_ids|inv_freq)$", "computed from the configuration; in older files"),
)
"""Names of weights that may be in the file and not in the model. Any other unused weight means that
the model is not of the class that was trained, so that some layers have random weights."""
ALLOWED_MISSING = (
    (r"(^|\.)pooler\.", "computed after the hidden states, so its numbers are not used"),
)
"""Patterns of names of weights that may be in the model and not in the file, with reasons."""

Patterns = tuple[tuple[str, str], ...]
"""(regular expression of names of weights, why they may be missing or unused)."""


def keys_not_allowed(keys: Iterable[str], allowed: Patterns) -> list[str]:
    """Return the keys that match none of the allowed patterns, sorted."""
    return sorted(k for k in keys if not any(re.search(pattern, k) for pattern, _ in allowed))


def allowed_keys(options: Mapping[str, Any]) -> tuple[Patterns, Patterns]:
    """Return two lists of patterns: of keys that may be missing, and of keys that may be unused.

    Patterns of the options `missing` and `unexpected` are included.
    """
    declared = [options.get(name) for name in ("missing", "unexpected")]
    missing, unexpected = [((str(pattern), "declared"),) if pattern else () for pattern in declared]
    return (*ALLOWED_MISSING, *missing), (*ALLOWED_UNUSED, *unexpected)


def without_tied(model: Any, missing: Iterable[str]) -> list[str]:  # any torch module
    """Return the names of missing weights that do not share memory with a loaded one."""
    missing_keys = set(missing)
    weights = dict(model.named_parameters(remove_duplicate=False))
    loaded = {id(weight) for name, weight in weights.items() if name not in missing_keys}
    return sorted(name for name in missing_keys if id(weights.get(name)) not in loaded)
