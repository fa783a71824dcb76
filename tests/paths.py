"""Where the tests find what they read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUBMISSIONS = ROOT / "submissions"
SHARED = ROOT.parent / "shared" / "geneb"
"""Public material that is not part of the repository: real task files, published figures."""
