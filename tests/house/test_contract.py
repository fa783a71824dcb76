"""What toolkit, harness and page write is what the others read.

A file that both programs read is defined in `reference_harness/formats`; what is still written on
both sides is compared here, so that changing one side alone fails.
"""

import ast
import dataclasses
import inspect
import json
import re
import struct
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from geneb_ci.audit.rerun import scoring
from geneb_ci.audit.trust import level as trust
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.types import EVIDENCE_MEANING, EVIDENCE_ORDER, Evidence, TrustLevel
from geneb_ci.harness.process import HarnessProcess, TaskSource
from geneb_ci.sandbox import run, supervise
from geneb_ci.sandbox.limits import TOKEN_BUDGET, Limits
from geneb_ci.sandbox.run import ExtractorSpec
from reference_harness import worker
from reference_harness.cli.main import cli
from reference_harness.embedding import batching, extractor_calls
from reference_harness.errors import OptionError
from reference_harness.formats import run_record
from reference_harness.formats.submission import Run
from reference_harness.worker_options import read_options
from tests.house.tracked import python_files, tracked
from tests.paths import ROOT

SPECS = [
    ExtractorSpec("builtin:kmer"),
    ExtractorSpec("builtin:kmer", options={"k": "4"}, batching="exact", device="cuda"),
    ExtractorSpec("Model", module=Path("extractors/model.py"), weights=Path("weights")),
    ExtractorSpec("Model", module=Path("extractors/model.py"), name_model="org/model", rows=1),
]


@pytest.mark.parametrize("spec", SPECS)
def test_the_worker_reads_the_options_that_the_sandbox_writes(spec, tmp_path):
    raw = run.worker_options(spec, Limits(), str)
    jsonschema.validate(
        json.loads(raw), json.loads((ROOT / "schemas/worker-options.schema.json").read_bytes())
    )
    (tmp_path / "options.json").write_bytes(raw)
    options = dataclasses.asdict(read_options(tmp_path / "options.json"))
    assert options == json.loads(raw)
    assert list(json.loads(raw)) == list(options)


def test_the_worker_refuses_other_options(tmp_path):
    file = tmp_path / "options.json"
    document = json.loads(run.worker_options(SPECS[0], Limits(), str))
    for content in (b"{", b"{}", b"1", json.dumps(document | {"seed": 1}).encode()):
        file.write_bytes(content)
        with pytest.raises(OptionError, match=r"^worker options: "):
            read_options(file)


def test_sandbox_and_worker_agree_on_defaults_and_on_the_header_of_embeddings():
    assert TOKEN_BUDGET == batching.DEFAULT_TOKEN_BUDGET
    assert run.BATCH_SEQUENCES == extractor_calls.FILE_BATCH_SEQUENCES
    assert ExtractorSpec.__annotations__["batching"] == extractor_calls.BatchingMode
    assert (supervise.RESULT_START, supervise.RESULT_VERSION) == (worker.MAGIC, worker.VERSION)
    assert supervise.RESULT_HEADER.format == worker.HEADER.format
    assert struct.calcsize(supervise.RESULT_HEADER.format) == 32
    assert {f"float{8 * size}" for size in supervise.DTYPE_BY_CODE} == set(extractor_calls._FLOATS)


def test_a_submission_is_a_projection_of_a_run_record():
    common_fields = set(run_record.RunRecord.model_fields) & set(Run.model_fields)
    assert common_fields == set(Run.model_fields)
    for name in ("benchmark", "dataset", "harness", "extractor", "model", "embedding", "hardware"):
        mine: Any = Run.model_fields[name].annotation
        theirs: Any = run_record.RunRecord.model_fields[name].annotation
        computed = {"dim"}  # of the embedding: the record has it for each task
        assert set(mine.model_fields) - computed <= set(theirs.model_fields), name


@pytest.mark.parametrize("data", [None, Path("data")])
@pytest.mark.parametrize("jobs", [None, 2])
def test_the_harness_knows_each_option_that_an_audit_passes(data, jobs, tmp_path, monkeypatch):
    requests: list[list[str]] = []
    monkeypatch.setattr(HarnessProcess, "call", lambda _, words, *__: requests.append(words))
    source = TaskSource(data, Path("benchmark.json") if data else None)
    scoring.write_sequences(["a", "b"], source, tmp_path, HarnessProcess())
    np.save(tmp_path / "e.npy", np.ones((3, 2)))
    how = scoring.ScoringSettings("float32", 1, 16, jobs, ("full", "1shot"))
    with pytest.raises(NothingChecked):  # nobody wrote the scores
        scoring.rescore_embeddings(
            "a", source, tmp_path / "s", tmp_path / "e.npy", how, HarnessProcess()
        )
    assert [words[0] for words in requests] == ["sequences", "rescore"]
    for name, *words in requests:
        command = cli.commands[name]
        command.make_context(name, words)


def test_the_first_error_of_a_value_is_read_in_one_place():
    """Only a submission's structure needs every error, each as a finding."""
    places = {
        str(path)
        for path in python_files("geneb_ci", "reference_harness")
        if re.search(r"\.errors\(", (ROOT / path).read_text(encoding="utf-8"))
    }
    assert places == {
        "geneb_ci/submission/structure.py",
        "reference_harness/formats/base.py",
        "reference_harness/formats/benchmark.py",
    }


def words(path: Path, levels: set[str]) -> set[str]:
    """Return the texts that stand in quotation marks in a file; none where few levels do."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if sum(level in text for level in levels) <= 2:
        return set()
    if path.suffix == ".py":
        nodes = ast.walk(ast.parse(text))
        return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return set(re.findall(r'"([^"\n]*)"', text))


@pytest.mark.parametrize("kind", [TrustLevel, Evidence])
def test_trust_levels_and_evidence_are_listed_in_one_place(kind):
    levels = set(map(str, kind))
    lists = {
        str(path)
        for path in tracked()
        if path.suffix in {".py", ".js", ".html"} and path.parts[0] in {"geneb_ci", "leaderboard"}
        if len(levels & words(path, levels)) > 2
    }
    assert lists == {"geneb_ci/common/types.py", "leaderboard/src/pure/evidence.js"}
    assert set(EVIDENCE_MEANING) == set(Evidence) > set(EVIDENCE_ORDER)


def test_each_trust_level_can_be_reached_and_is_described():
    source = inspect.getsource(trust)
    assert [level for level in TrustLevel if f"TrustLevel.{level.name}" not in source] == []
    rows = re.findall(
        r"^\| `([a-z-]+)` \|", (ROOT / "docs/maintainer/trust.md").read_text("utf-8"), re.MULTILINE
    )
    assert {str(level) for level in TrustLevel} <= set(rows), (
        "describe it in docs/maintainer/trust.md"
    )
