"""`check --fix`: what can be repaired in one way only, and nothing else."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import geneb_ci
from geneb_ci.cli.main import main
from tests.cli.repository import small_repository
from tests.paths import PUBLIC, ROOT, SUBMISSIONS
from tests.small import small, small_v11, small_v12

MAKERS = (small, small_v11, small_v12)
LAYOUTS: tuple[dict[str, Any], ...] = (
    {"separators": (",", ":")},
    {},
    {"indent": 1},
    {"indent": "\t", "ensure_ascii": False},
)


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> Path:
    """Make a repository whose schemas are there."""
    root = small_repository(tmp_path_factory.mktemp("fixes") / "board", "first")
    for path in (ROOT / "schemas").glob("submission-*.schema.json"):
        shutil.copy(path, root / "schemas")
    return root


def shuffled(value: Any, order: random.Random) -> Any:
    """Return a document with the members of every object in another order."""
    if not isinstance(value, dict):
        return value
    keys = list(value)
    order.shuffle(keys)
    return {key: shuffled(value[key], order) for key in keys}


def fixed(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    geneb_ci.fix(path)
    return path.read_text(encoding="utf-8")


@given(maker=st.sampled_from(MAKERS), layout=st.sampled_from(LAYOUTS), seed=st.integers(0, 2**32))
@settings(max_examples=10, phases=set(Phase) - {Phase.shrink})
def test_any_order_of_members_becomes_the_order_of_the_format(board, maker, layout, seed):
    """Law: fix(shuffle(x)) = fix(x), which has the values of x; fixing it again changes nothing."""
    path, document = board / "submissions/mine.json", maker("mine")
    plain = fixed(path, json.dumps(document, **layout))
    again = fixed(path, json.dumps(shuffled(document, random.Random(seed)), **layout))
    assert again == plain
    schema = f"../schemas/submission-{document['schema_version']}.schema.json"
    assert json.loads(again) == {"$schema": schema, **document}
    assert list(json.loads(again)["results"]) == ["full", "10shot", "1shot"]
    assert geneb_ci.fix(path)[0].changes == ()
    path.unlink()


def test_a_rounded_mean_becomes_the_exact_one_and_every_other_byte_stays(board, capsys):
    path = board / "submissions/mine.json"
    document = json.loads(fixed(path, json.dumps(small_v12("mine"))))
    task = next(iter(document["results"]["10shot"]))
    exact = document["evidence"]["10shot"][task]["per_seed"]["MCC"][0]
    rounded = document["results"]["10shot"][task]["MCC"] = round(exact, 4)
    document["meta"]["params"] = 8.6e7
    text = json.dumps(document, indent=2).replace("86000000.0", "8.60e+07")
    path.write_text(text, encoding="utf-8")
    assert main(["check", "--diff", str(path)]) == 0
    assert (
        f'\n-        "MCC": {rounded!r},\n+        "MCC": {exact!r},\n' in capsys.readouterr().out
    )
    assert path.read_text(encoding="utf-8") == text, "--diff writes nothing"
    assert main(["check", "--fix", str(path), "--select", "structure"]) == 0
    assert "1 score set to the exact mean of the seeds" in " ".join(capsys.readouterr().err.split())
    expected = text.replace(f'"MCC": {rounded!r},', f'"MCC": {exact!r},', 1)
    assert path.read_text(encoding="utf-8") == expected + "\n"
    path.unlink()


def test_a_mean_that_is_no_rounding_and_rounded_seeds_are_left(board):
    path, document = board / "submissions/mine.json", small_v12("mine")
    task = next(iter(document["results"]["10shot"]))
    document["results"]["10shot"][task]["MCC"] += 0.01
    other = list(document["results"]["1shot"])[1]
    seeds = document["evidence"]["1shot"][other]["per_seed"]
    seeds["Acc"] = [round(value, 3) for value in seeds["Acc"]]
    text = fixed(path, json.dumps(document))
    assert json.loads(text)["results"] == document["results"]
    path.unlink()


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b'{"a":1,"a":2}', b"\xff", b'{"a":NaN}', b"{"])
def test_what_is_broken_is_left_to_check(board, raw):
    path = board / "submissions/broken.json"
    path.write_bytes(raw)
    (fixed_file,) = geneb_ci.fix(path)
    assert (fixed_file.changes, fixed_file.left, fixed_file.diff(), path.read_bytes()) == (
        (),
        "",
        "",
        raw,
    )
    path.unlink()


def test_official_and_audited_files_keep_their_bytes(board, monkeypatch, capsys):
    monkeypatch.chdir(PUBLIC)
    official = SUBMISSIONS / "GROVER.json"
    before = official.read_bytes()
    (fixed,) = geneb_ci.fix(official)
    assert (fixed.left, fixed.changes) == ("since official files must keep their bytes", ())
    assert official.read_bytes() == before
    path = board / "leaderboard/audits/first"
    path.mkdir(parents=True)
    (path / "0.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(board)
    assert main(["check", "--fix", "--select", "structure"]) == 0
    error_output = capsys.readouterr().err
    assert error_output == "not changed, since changed bytes would need another audit: 1 file\n"
    shutil.rmtree(board / "leaderboard/audits")


def test_a_file_that_changed_meanwhile_is_not_written(board):
    path = board / "submissions/mine.json"
    path.write_text(json.dumps(small("mine")), encoding="utf-8")
    path.chmod(0o600)
    (fixed_file,) = geneb_ci.fix(path, write=False)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(geneb_ci.MachineFault, match="changed since it was read"):
        fixed_file.write()
    assert path.read_text(encoding="utf-8") == "[]"
    path.write_text(fixed_file.before, encoding="utf-8")
    fixed_file.write()
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == (
        fixed_file.after,
        0o600,
    )
    path.unlink()
