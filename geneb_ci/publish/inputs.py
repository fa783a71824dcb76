"""Which parts of the repository the published files depend on."""

# What a layout of submissions can name (geneb_ci.config), and the code that turns it into a board:
# where none of these changed, the published files cannot have changed either.
INPUTS = (
    "submissions",
    "leaderboard",
    "schemas",
    "pyproject.toml",
    "benchmark",
    "model_cards",
    "harness/extractors",
)
CODE = "geneb_ci"

SUBMISSIONS = "submissions"
POLICY = "leaderboard/policy"
OFFICIAL = f"{POLICY}/official.json"
BENCHMARK = "schemas/benchmark.json"
DECISIVE = (OFFICIAL, f"{POLICY}/policy.toml", f"{POLICY}/keys.json", BENCHMARK)
"""What decides the worth of evidence, for every row."""
AUDITS = "leaderboard/audits"

PAGE = "leaderboard"
"""The folder that is published: the page and the Space card; generated files join it."""
UNPUBLISHED = ("policy", "audits")
"""Folders in it that decide what is published, and are not."""
