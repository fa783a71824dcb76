"""Many records are verified by one process that reads each file once."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.many_records import many_records
from tests.gate import gated

COUNTING = """
import collections, json, sys
opened = collections.Counter()
sys.addaudithook(lambda event, given: event == "open" and opened.update([str(given[0])]))
from geneb_ci.audit.sampling.beacon import verify_round
from geneb_ci.cli.main import main
code = main(sys.argv[1:])
print(json.dumps([verify_round.cache_info().misses, opened]), file=sys.stderr)
sys.exit(code)
"""
RECORDS = 4


@pytest.fixture(scope="module")
def repository_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many")
    many_records(root, RECORDS)
    return root


@pytest.mark.parametrize("named", gated(["all", "folder", "files"], "all", "files"))
def test_each_file_is_read_once_and_each_round_verified_once(repository_folder, named):
    import json

    audits = repository_folder / "leaderboard/audits"
    files = sorted(audits.glob("*/*.json"))
    words = {"all": [], "folder": ["leaderboard/audits"], "files": map(str, files)}[named]
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, "audit", "verify", *words],
        cwd=repository_folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.endswith(f"{RECORDS} records: {RECORDS} verified\n")
    rounds, opened = json.loads(done.stderr.splitlines()[-1])
    inside = Counter(
        {Path(name).name: n for name, n in opened.items() if str(repository_folder) in name}
    )
    expected = [*files, *(repository_folder / "submissions").glob("*.json")]
    assert {path.name: inside[path.name] for path in expected} == {
        item.name: 1 for item in expected
    }
    assert rounds == 1
