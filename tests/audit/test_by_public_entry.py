"""Entries of models outside the classes of transformers: each describes a run that is committed."""

import hashlib
import json
import tomllib

import pytest

from tests import forked
from tests.paths import PUBLIC, SUBMISSIONS, outside_rows

MODELS = ("enformer-official-rough",)
MORE = (
    *("dna_gpt0.1b_h", "dna_gpt3b_m", "deepgene", "genomics-fm", "JanusDNA_72_w", "JanusDNA_72_wo"),
    *("eccdnamamba_weights", "evo-1-131k-base", "space"),
)


@pytest.mark.parametrize(
    "model_id", [*MODELS, *(pytest.param(model_id, marks=pytest.mark.nightly) for model_id in MORE)]
)
def test_a_row_is_committed_by_its_entry(model_id, tmp_path):
    output = tmp_path / "c.json"
    submission = SUBMISSIONS / f"{model_id}.json"
    command = ("audit", "commit", str(submission), "--output", str(output))
    done = forked.run("geneb_ci", *command, cwd=PUBLIC)
    assert done.returncode == 0, done.stderr
    commitment = json.loads(output.read_bytes())["commitment"]
    raw = outside_rows(f"leaderboard/policy/models/{model_id}.toml").read_bytes()
    entry = tomllib.loads(raw.decode())
    assert commitment["model_id"] == model_id
    assert commitment["extractor"]["path"] == entry["run"]["extractor"]
    assert commitment["extractor"]["options"].items() >= entry["run"]["options"].items()
    assert commitment["weights"]["files"] == entry["weights"]["files"]
    assert commitment["entry"] == hashlib.sha256(raw).hexdigest()
