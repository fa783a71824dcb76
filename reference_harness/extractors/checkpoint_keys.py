"""Which weights may be missing from a file or left over in it, and why."""

import re
from collections.abc import Iterable

# Keys that may be in the file without being in the model. Anything else means that another class
# was built than the one that was trained: some layers then hold random numbers.
HEADS = (
    (r"^(lm_head|cls|score|classifier|qa_outputs)\.", "a task's head: we read hidden states"),
    (r"(^|\.)pooler\.", "stands behind the hidden states"),
    (r"(^|\.)(position_ids|inv_freq)$", "computed from the configuration, older files hold it"),
)
# Keys that may be in the model without being in the file.
UNUSED = ((r"(^|\.)pooler\.", "stands behind the hidden states, so its random numbers are unread"),)


def unexplained(keys: Iterable[str], allowed: tuple[tuple[str, str], ...]) -> list[str]:
    """Return the keys that none of the allowed patterns explains, sorted."""
    return sorted(k for k in keys if not any(re.search(pattern, k) for pattern, _ in allowed))
