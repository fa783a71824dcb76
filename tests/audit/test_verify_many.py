"""Many records are verified by one process that reads each file once."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.many_records import many_records
from tests import forked
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


# In the gate, `audit verify` of all in tests/audit/test_journey.py.
@pytest.mark.parametrize("named", gated(["all", "folder", "files"], "files"))
def test_each_file_is_read_once_and_each_round_verified_once(repository_folder, named):
    audits = repository_folder / "leaderboard/audits"
    files = sorted(audits.glob("*/*.json"))
    words = {"all": [], "folder": ["leaderboard/audits"], "files": map(str, files)}[named]
    command = ("counting", "audit", "verify", *words)
    done = forked.start(*command, cwd=repository_folder, code=COUNTING)
    output, errors = done.communicate()
    assert done.returncode == 0, errors
    assert output.endswith(f"{RECORDS} records: {RECORDS} verified\n")
    rounds, opened = json.loads(errors.splitlines()[-1])
    inside = Counter(
        {Path(name).name: n for name, n in opened.items() if str(repository_folder) in name}
    )
    expected = [*files, *(repository_folder / "submissions").glob("*.json")]
    assert {path.name: inside[path.name] for path in expected} == {
        item.name: 1 for item in expected
    }
    assert rounds == 1
