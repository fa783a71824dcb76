"""The example of a trained model: what its page shows is typed, on the smallest of its tasks."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.paths import REAL_TASKS, ROOT
from tests.sandbox.conftest import sandbox_of
from tests.tutorial.blocks import PROGRAMS, Block, blocks
from tools.demo_audit import COMMITTED_AT, ROUND

PAGE = (ROOT / "docs/contributor/trained-model.md").read_text(encoding="utf-8")
TASK = "leannmlindsey_GUE_mouse_3.csv.gz"
WHEEL = "GENEB_SPLICEAI_WHEEL"
"""Variable that names the wheel; else it is downloaded."""
MODULE = Path("submissions/extractors/spliceai.py")


def block(word: str) -> Block:
    (block_found,) = (item for item in blocks(PAGE) if word in item.text)
    return block_found


def test_the_extractor_of_the_page_pins_its_weights():
    code = block("class SpliceAI").text
    assert len(re.findall(r'"spliceai\d\.h5": "[0-9a-f]{64}"', code)) == 5
    assert re.search(r'COMMIT = "[0-9a-f]{40}"', code)
    compile(code, "spliceai.py", "exec")


def check_command(*words: str) -> None:
    """Run what needs a package index; without one the test is skipped."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no package index: {done.stderr.strip()[-200:]}")


def weights(folder: Path) -> Path:
    """Unpack the weights of the wheel."""
    if named := os.environ.get(WHEEL):
        wheel = Path(named)
    else:
        pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--quiet")
        check_command(*pip, "--dest", str(folder), "spliceai==1.3.1")
        (wheel,) = folder.glob("*.whl")
    out = folder / "weights"
    out.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("spliceai/models/"):
                (out / Path(name).name).write_bytes(archive.read(name))
    return out


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Lay out what the page saves: task, weights, extractor, lock and card."""
    if not (REAL_TASKS / TASK).exists():
        pytest.skip("without the real tasks")
    for _ in sandbox_of(2, tmp_path / "trial"):
        pass  # fails or skips where there is none
    root = tmp_path / "board"
    (root / "tasks").mkdir(parents=True)
    shutil.copy(REAL_TASKS / TASK, root / "tasks")
    shutil.move(weights(tmp_path), root / "weights")
    (root / MODULE).parent.mkdir(parents=True)
    (root / MODULE).write_text(block("class SpliceAI").text, encoding="utf-8")
    card = block("# SpliceAI 3.5M")
    (root / str(card.file)).parent.mkdir(parents=True)
    (root / str(card.file)).write_text(card.text, encoding="utf-8")
    needs = tmp_path / "needs.in"
    needs.write_text("h5py==3.16.0\n", encoding="utf-8")
    check_command(
        *(sys.executable, "-m", "uv", "pip", "compile", str(needs), "--generate-hashes"),
        *("--universal", "--python-version", "3.11", "--only-binary", ":all:", "--quiet"),
        *("--no-emit-package", "numpy", "-o", str(root / MODULE.with_suffix(".lock.txt"))),
    )
    (tmp_path / "round.json").write_text(json.dumps(ROUND), encoding="utf-8")
    return root


def commands() -> list[list[str]]:
    """Return the commands of the page's last session, as words."""
    text = block("geneb-ci audit submissions/spliceai.json").text.replace("\\\n", " ")
    return [shlex.split(line[2:]) for line in text.splitlines() if line.startswith("$ ")]


@pytest.mark.nightly  # minutes: it embeds 2,143 sequences, and most of them again in an audit
def test_a_trained_model_goes_from_its_wheel_to_an_audit(board: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment["XDG_CACHE_HOME"] = str(board.parent / "cache")
    options_by_name = {}
    for program, *words in commands():
        if words[0] == "audit":
            key = words.index("--key")
            words[key : key + 2] = ["--unsigned", "--committed-at", COMMITTED_AT]
            words += ["--beacon-file", str(board.parent / "round.json")]
        done = subprocess.run(
            [sys.executable, "-m", PROGRAMS[program], *words],
            cwd=board, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        options_by_name[words[0]] = done.stdout + done.stderr
        if words[0] == "init":
            policy = board / "leaderboard/policy/policy.toml"
            text = policy.read_text(encoding="utf-8")
            policy.write_text(
                re.sub(r"(?m)^((?:minimum_)?drawn *= *)\d+", r"\g<1>1", text), "utf-8"
            )
    assert "all 25 properties hold" in options_by_name["extractors"]
    audited = " ".join(options_by_name["audit"].split())
    assert "agrees: 1 task rerun" in audited
    assert "environment: lock with sha256" in audited
    record = json.loads((board.parent / "spliceai.record.json").read_bytes())
    assert record["properties"]["layer-and-pooling"]["outcome"] == "verified"
    (mcc,) = re.findall(r"\| SpliceAI, 160 columns \| ([\d.]+) \|", PAGE)
    full = record["tasks"][TASK.partition(".")[0]]["regimes"]["full"]
    assert full["scores"]["MCC"] == pytest.approx(float(mcc), abs=0.02)
