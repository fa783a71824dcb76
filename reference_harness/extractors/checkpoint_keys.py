"""Which weights may be missing from a file or left over in it, and why."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Keys that may be in the file without being in the model. Anything else means that another class
# was built than the one that was trained: some layers then hold random numbers.
HEADS = (
    (r"^(lm_head|cls|score|classifier|qa_outputs)\.", "a task's head: we read hidden states"),
    (r"(^|\.)pooler\.", "stands behind the hidden states"),
    (r"(^|\.)(position_ids|inv_freq)$", "computed from the configuration, older files hold it"),
)
# Keys that may be in the model without being in the file.
UNUSED = ((r"(^|\.)pooler\.", "stands behind the hidden states, so its random numbers are unread"),)

Patterns = tuple[tuple[str, str], ...]


def unexplained(keys: Iterable[str], allowed: Patterns) -> list[str]:
    """Return the keys that none of the allowed patterns explains, sorted."""
    return sorted(k for k in keys if not any(re.search(pattern, k) for pattern, _ in allowed))


def allowed_keys(options: Mapping[str, Any]) -> tuple[Patterns, Patterns]:
    """Return what may be missing and what may be left over, with what the options declare."""
    declared = [options.get(name) for name in ("missing", "unexpected")]
    missing, unexpected = [((str(pattern), "declared"),) if pattern else () for pattern in declared]
    return (*UNUSED, *missing), (*HEADS, *unexpected)


def untied(model: Any, missing: Iterable[str]) -> list[str]:  # any torch module
    """Return the missing keys less those that share their numbers with a weight that was loaded."""
    absent = set(missing)
    weights = dict(model.named_parameters(remove_duplicate=False))
    loaded = {id(weight) for name, weight in weights.items() if name not in absent}
    return sorted(name for name in absent if id(weights.get(name)) not in loaded)
