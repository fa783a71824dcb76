"""Prints what one job of the workflow publish hands to the next: two digests, a line each.

usage: python3 -I tools/board_outputs.py MANIFEST.json
"""

import hashlib
import json
import re
import sys
from pathlib import Path

# A line of GITHUB_OUTPUT ends where its value does: nothing but digits may stand in it.
DIGITS = re.compile(r"[0-9a-f]{64}")


def outputs(raw: bytes) -> str:
    """Return the generation of a manifest and the digest of its bytes as lines `name=value`.

    Raises ValueError when the generation is no digest.
    """
    generation = json.loads(raw)["generation"]
    if not isinstance(generation, str) or not DIGITS.fullmatch(generation):
        raise ValueError(f"the generation {generation!r} is no SHA-256")
    return f"generation={generation}\nmanifest={hashlib.sha256(raw).hexdigest()}\n"


if __name__ == "__main__":
    sys.stdout.write(outputs(Path(sys.argv[1]).read_bytes()))
