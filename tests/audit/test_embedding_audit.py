"""A whole audit by receipt: from `run --receipt` to the label, by the commands of a user."""

import functools
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from geneb_ci.audit.rerun.honesty import TRAINING_MARGIN, net_error_share
from reference_harness.data import benchmark
from reference_harness.formats.rescored import ChangedDecisions
from reference_harness.probe.logistic import few_shot_indices
from tests.audit.installed import Installed
from tests.harness.extractors.models import save
from tests.receipt import attacks
from tests.receipt.forged import claim_canonical, invented, rewrite
from tests.sandbox.conftest import sandbox_of
from tools.demo_audit import COMMITTED_AT

ROWS = 60
EVERY_ROW = "20000"
"""More than GENEB-mini has: what an attack's test finds does not depend on the draw."""
LATER = "2026-09-20T00:00:00Z"
EMBEDDINGS = ("--sample", "embeddings", "--size")
BEACON = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")


def installed(tmp_path_factory: pytest.TempPathFactory, **more: str) -> Installed:
    """Lay out a repository whose policy is content with few embeddings."""
    made = Installed(tmp_path_factory.mktemp("audit"), drawn=5, boxed=False)
    made.environment |= {"TMPDIR": str(tmp_path_factory.mktemp("scratch")), **more}
    policy = made.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("minimum_rows = 1500", f"minimum_rows = {ROWS}"), "utf-8")
    return made


def harnessed(prepared_repository: Installed, model_id: str, *extractor: str) -> None:
    """Run an extractor on every task, unless its words name some, with a receipt."""
    prepared_repository.run(
        *("reference_harness", "run", *extractor, "--output", f"{model_id}.record.json"),
        *("--model-id", model_id, "--submission", f"submissions/{model_id}.json"),
        *("--submitted-by", "a test", "--receipt", f"{model_id}.receipt", "--quiet"),
    )


def audited(
    prepared_repository: Installed, model_id: str, rows: str = str(ROWS), *more: str
) -> CompletedProcess[str]:
    """Commit, draw embeddings and run the audit."""
    file, plan = f"submissions/{model_id}.json", f"{model_id}.plan.json"
    prepared_repository.run("geneb_ci", "audit", "commit", file, "--output", "c.json")
    prepared_repository.run(
        "geneb_ci", "audit", "plan", "c.json", *EMBEDDINGS, rows, *BEACON, "--output", plan
    )
    receipt = ("--receipt", f"{model_id}.receipt")
    return prepared_repository.run(
        "geneb_ci", "audit", "run", plan, "--key", "key.pem", *receipt, *more, check=False
    )


def claim_what_rows_give(prepared_repository: Installed, model_id: str) -> None:
    """Claim the scores of record that the altered embeddings of a receipt give, as a forger
    does."""
    file = prepared_repository.root / f"submissions/{model_id}.json"
    document = json.loads(file.read_bytes())
    prepared_repository.run(
        *("reference_harness", "receipt-cells", "--submission", f"submissions/{model_id}.json"),
        *("--receipt", f"{model_id}.receipt", "--tasks", ",".join(document["receipt"]["tasks"])),
        *("--output", "cells.json", "--quiet"),
    )
    for task, cells in json.loads((prepared_repository.root / "cells.json").read_bytes())[
        "tasks"
    ].items():
        for regime, cell in cells["record"].items():
            document["results"][regime][task] = cell["scores"]
            document["evidence"][regime][task] |= {
                name: cell[name]
                for name in ("per_seed", "classes", "confusion", "predictions_sha256")
            }
    file.write_text(json.dumps(document), encoding="utf-8")


def record_of(prepared_repository: Installed, model_id: str) -> Path:
    files = record_files(prepared_repository.root / "leaderboard/audits")
    (file,) = (path for path in files if path.parent.name == model_id)
    return file


def outcome_in(record: Path) -> dict[str, Any]:
    predicate: dict[str, Any] = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
    return predicate


def level(prepared_repository: Installed, model_id: str) -> dict[str, Any]:
    rows = json.loads(prepared_repository.run("geneb_ci", "trust", "--format", "json").stdout)[
        "rows"
    ]
    (trust_row,) = (row for row in rows if row["model_id"] == model_id)
    return dict(trust_row)


@pytest.fixture(scope="module")
def kmers(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    installation = installed(tmp_path_factory)
    words = ("--extractor", "kmer", "--option", "k=2")
    harnessed(installation, "words", *words)
    harnessed(installation, "some", *words, "--tasks", ",".join(ATTACKS))
    # One at a time: the board has no row of some tasks.
    (installation.root / "submissions/some.json").rename(installation.root / "some.json")
    return installation


@pytest.fixture(scope="module")
def honest(kmers: Installed) -> Iterator[Path]:
    """Audit honest embeddings, and return the record."""
    done = audited(kmers, "words", str(ROWS), "--work", "work")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agrees: 39/39 cells" in done.stdout
    record = record_of(kmers, "words")
    yield record
    shutil.rmtree(record.parent)


def test_an_honest_row_is_verified_and_the_board_says_that_cells_were_recomputed(kmers, honest):
    trust_level = level(kmers, "words")
    outcome = outcome_in(honest)
    rows = sum(len(task["deviation"].split()) for task in outcome["tasks"])
    assert (trust_level["level"], trust_level["evidence"]) == ("verified", "audited")
    message = (
        f"cells recomputed from published embeddings: 39/39, {rows:,} embeddings computed again, "
    )
    assert trust_level["recomputed"].startswith(message)
    assert outcome["cells"]["equal"] == outcome["cells"]["of"] == 39
    assert outcome["not_proved"][0].startswith("that memory is excluded")
    assert outcome["cells"]["of_record"] == 39
    assert not any("the scores on the board" in claim for claim in outcome["not_proved"])
    assert trust_level["recomputed"].endswith("; the scores shown are among them")
    assert outcome["verdict"] == "agrees"
    assert not outcome["variants"]["memorised"]
    assert set(outcome["variants"]["others"]) == {
        *("1shot, canonical", "10shot, canonical", "1shot, record", "10shot, record"),
        "full, record",
    }
    changed = ChangedDecisions(**outcome["variants"]["training"])
    assert abs(net_error_share(changed)) < TRAINING_MARGIN
    assert len(outcome["refits"]) == 5
    assert [bound["regime"] for bound in outcome["bounds"]] == ["full", "10shot", "1shot"]
    for bound in outcome["bounds"]:
        # Few draws: 65 of 13 tasks, of which the probes of few-shot regimes take turns.
        assert (bound["draws"], bound["flipped"]) == (65, 0)
        assert 0.05 < bound["raised"] < 2
    kmers.run("geneb_ci", "build", "--output", "board")
    board = json.loads((kmers.root / "board/leaderboard.json").read_bytes())
    for regime in board["data"].values():
        (row,) = regime
        assert (row["evidence"], row["submitted"]) == ("audited", "verified")
        assert (row["audit"]["cells"], row["audit"]["verdict"]) == ("39/39", "agrees")
        assert "unaudited" not in row["audit"]
        assert row["attested"][0]["by"] == "recomputed from published embeddings (39 of 39 cells)"


@pytest.mark.nightly  # in the gate without a sandbox: above; in one, drawn tasks: test_rerun.py
def test_in_a_sandbox_the_comparison_is_the_same(kmers, honest, tmp_path):
    for _ in sandbox_of(2, tmp_path / "trial"):
        pass  # fails or skips where there is none
    with kmers.without_audits(), kmers.in_sandbox():
        done = audited(kmers, "words", str(ROWS), "--work", "boxed")
        assert done.returncode == 0, done.stdout + done.stderr
        outcome = outcome_in(record_of(kmers, "words"))
        assert level(kmers, "words")["level"] == "verified"
    assert outcome["tasks"] == outcome_in(honest)["tasks"]
    assert all(escape["detail"] != "not attempted" for escape in outcome["sandbox"]["escapes"])


def test_anybody_verifies_draw_proofs_comparison_and_cells(kmers, honest):
    words = ("geneb_ci", "audit", "verify", str(honest), "--format", "json")
    again = ("--cells", "--receipt", "words.receipt")
    record = json.loads(kmers.run(*words, *again).stdout)["records"][0]
    states = {step["step"]: step["state"] for step in record["steps"]}
    assert set(states.values()) == {"holds"}
    assert [*states][-4:] == ["rerun", "proofs", "embeddings", "cells"]
    shown = kmers.run("geneb_ci", "audit", "verify", str(honest)).stdout
    assert "39/39 cells as claimed, " in shown
    assert "the receipt agrees, the scores on the board were compared" in shown
    assert record["verified"]


def test_an_unsigned_audit_keeps_the_rows_that_its_record_needs(kmers, honest):
    words = (
        "geneb_ci",
        "audit",
        "run",
        "words.plan.json",
        "--unsigned",
        "--format",
        "json",
        "--work",
        "work",
    )
    document = json.loads(kmers.run(*words, "--receipt", "words.receipt").stdout)
    rows = (kmers.root / "work/rerun.npz").read_bytes()
    assert document["rerun_sha256"] == hashlib.sha256(rows).hexdigest()
    assert rows == honest.with_name(f"{honest.stem}.rows.npz").read_bytes()


@pytest.mark.usefixtures("honest")
def test_a_second_draw_of_one_commitment_is_refused(kmers):
    """A later time would give other embeddings: whoever dislikes a draw could wait for the next."""
    kmers.run("geneb_ci", "audit", "commit", "submissions/words.json", "--output", "c.json")
    words = ("geneb_ci", "audit", "plan", "c.json", "--committed-at", LATER, "--output", "again")
    done = kmers.run(*words, "--rows", str(ROWS), check=False)
    assert done.returncode == 11, done.stdout + done.stderr
    assert f"this commitment already has a draw, as of {COMMITTED_AT}" in done.stderr
    lower = ("--rows", str(ROWS - 1), *BEACON, "--output", "again")
    done = kmers.run("geneb_ci", "audit", "plan", "c.json", *lower, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"would make the sample smaller: --size {ROWS} was drawn before" in done.stderr
    assert not (kmers.root / "again").exists()


def test_rerun_rows_that_are_missing_or_changed_are_named(kmers, honest):
    old_rows_file = honest.with_name(f"{honest.stem}.rows.npz")
    stored_bytes = old_rows_file.read_bytes()
    old_rows_file.write_bytes(stored_bytes[:-1] + b"x")
    done = kmers.run("geneb_ci", "audit", "verify", str(honest), check=False)
    assert done.returncode == 11
    assert "rejected: rerun" in done.stdout
    old_rows_file.unlink()
    done = kmers.run("geneb_ci", "audit", "verify", str(honest), check=False)
    assert done.returncode == 3
    assert kmers.run("geneb_ci", "audit", "verify").returncode == 0
    old_rows_file.write_bytes(stored_bytes)


def test_a_plan_says_what_it_finds_and_costs_before_it_is_spent(kmers):
    kmers.run("geneb_ci", "audit", "commit", "submissions/words.json", "--output", "c.json")
    output = kmers.run("geneb_ci", "audit", "plan", "c.json", "--rows", "standard").stdout
    assert "test embeddings, 1,500 in each of 3 regimes:" in output
    assert "This is not a bound: embeddings altered by a better method gain more." in output
    assert "cost: at most " in output
    full = kmers.run("geneb_ci", "audit", "plan", "c.json", *EMBEDDINGS, "full").stdout
    assert full != output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sample", "embeddings", "--size", "many"), "--size 'many' is not the size of a sample"),
        (("--rows", "0"), "--size '0' is not the size of a sample"),
        (
            ("--rows", "10", "--drawn", "3"),
            "--drawn can only be passed with --sample tasks, but the sample is --sample embeddings",
        ),
        (
            ("--rows", "10", "--submission", "other.json"),
            "not the committed submission",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(kmers, words, message):
    kmers.run("geneb_ci", "audit", "commit", "submissions/words.json", "--output", "c.json")
    (kmers.root / "other.json").write_text("{}", encoding="utf-8")
    done = kmers.run("geneb_ci", "audit", "plan", "c.json", *words, check=False)
    assert done.returncode not in {0, 1}
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def copied(kmers: Installed, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Put a copy of an honest submission in its place, under the id that a test names.

    It has the tasks that are attacked, or with `every` before the id, all.
    """
    every, _, name = str(request.param).rpartition(" ")
    path, aside = kmers.root / "submissions/words.json", kmers.root / "words.json"
    file = path.with_name(f"{name}.json")
    path.rename(aside)
    document = json.loads((aside if every else kmers.root / "some.json").read_bytes())
    document["model_id"] = document["meta"]["display"] = name
    file.write_text(json.dumps(document), encoding="utf-8")
    of = "words" if every else "some"
    shutil.copytree(kmers.root / f"{of}.receipt", kmers.root / f"{name}.receipt")
    yield file
    file.unlink()
    aside.rename(path)
    shutil.rmtree(kmers.root / "leaderboard/audits" / name, ignore_errors=True)


@pytest.mark.nightly  # in the gate, tests/receipt/test_attacks.py
@pytest.mark.parametrize("copied", ["altered"], indirect=True)
def test_an_altered_test_row_disputes_the_row(kmers, copied):
    """The claims are what the altered embeddings give: only the rerun shows it."""

    def change(rows: np.ndarray, labels: np.ndarray, train: int) -> np.ndarray:
        return attacks.altered(rows, labels, [train + 3, train + 4], train)

    rewrite(copied, kmers.root / "altered.receipt", "mini_tf", change)
    claim_what_rows_give(kmers, "altered")
    done = audited(kmers, "altered", EVERY_ROW)
    assert done.returncode == 11, done.stdout + done.stderr
    assert "cells recomputed from the receipt: 15/15 are as claimed" in done.stdout
    assert "not what the extractor gives: test embedding" in done.stdout
    assert outcome_in(record_of(kmers, "altered"))["verdict"] == "differs"
    assert level(kmers, "altered")["level"] == "disputed"


def support_row(rows: np.ndarray, labels: np.ndarray, train: int) -> np.ndarray:
    """Alter a support embedding of a 1shot probe."""
    index = int(few_shot_indices(labels[:train], 1, benchmark.mini().protocol.seeds[2])[1])
    return attacks.altered(rows, labels, [index], train)


ATTACKS: dict[str, Callable[..., np.ndarray]] = {
    "mini_tf": support_row,
    "mini_splice": lambda rows, _labels, _train: np.ascontiguousarray(rows[:, ::-1]),
    "mini_promoter": functools.partial(attacks.column, eps=1e-3),
    "mini_histone": functools.partial(attacks.column, eps=1e-4),
    "mini_enhancer": functools.partial(attacks.push, eps=1e-5),
}
"""Task to what is done to it; the embeddings of mini_splice are those of another model."""


@pytest.mark.nightly  # in the gate, without a sandbox: tests/receipt/test_attacks.py
@pytest.mark.parametrize("copied", ["several"], indirect=True)
def test_each_kind_of_attack_is_in_the_record(kmers, copied):
    for task, change in ATTACKS.items():
        rewrite(copied, kmers.root / "several.receipt", task, change)
    claim_what_rows_give(kmers, "several")
    done = audited(kmers, "several", EVERY_ROW)
    assert done.returncode == 11, done.stdout + done.stderr
    outcome = outcome_in(record_of(kmers, "several"))
    assert (outcome["verdict"], outcome["cells"]["equal"]) == ("differs", 15)
    assert {task["task"] for task in outcome["tasks"] if task["failed"]} == set(ATTACKS)
    assert "embeddings of" in outcome["reasons"][0]
    assert "are not what the extractor gives: " in outcome["reasons"][0]


@pytest.mark.nightly  # in the gate, without a sandbox: tests/receipt/test_attacks.py
@pytest.mark.parametrize("copied", ["border"], indirect=True)
def test_what_moves_within_the_tolerance_is_found_by_its_direction(kmers, copied):
    for task in json.loads(copied.read_bytes())["receipt"]["tasks"]:
        rewrite(copied, kmers.root / "border.receipt", task, attacks.border)
    claim_what_rows_give(kmers, "border")
    done = audited(kmers, "border", EVERY_ROW)
    assert done.returncode == 11, done.stdout + done.stderr
    outcome = outcome_in(record_of(kmers, "border"))
    assert (outcome["verdict"], outcome["cells"]["equal"]) == ("differs", 15)
    assert any(
        reason.startswith("what the embeddings differ by points towards the labels: ")
        for reason in outcome["reasons"]
    )
    assert outcome["direction"]["p"] < 1e-3
    assert outcome["effect"]["test"]["statistic"] < -5


@pytest.mark.nightly  # in the gate: tests/receipt/test_verify_receipt.py
@pytest.mark.parametrize("copied", ["raised"], indirect=True)
def test_a_claim_that_the_rows_do_not_give_differs(kmers, copied):
    document = json.loads(copied.read_bytes())
    document["evidence"]["full"]["mini_tf"]["predictions_sha256"] = "0" * 64
    copied.write_text(json.dumps(document), encoding="utf-8")
    done = audited(kmers, "raised")
    assert done.returncode == 11, done.stdout + done.stderr
    assert (
        "differs: 1 of 15 cells are not those that the committed embeddings give: mini_tf, full: "
        "shown predictions_sha256"
    ) in done.stdout


@pytest.mark.parametrize("copied", ["invented"], indirect=True)
def test_scores_that_nobody_computed_are_not_confirmed_by_an_honest_receipt(kmers, copied):
    """Extractor and receipt are honest; what the board shows is made up."""
    honest = json.loads(copied.read_bytes())
    copied.write_text(json.dumps(invented(honest)), encoding="utf-8")
    kmers.run("geneb_ci", "check", str(copied))
    done = audited(kmers, "invented")
    assert done.returncode == 11, done.stdout + done.stderr
    assert "15 of 15 cells are not those that the committed embeddings give" in done.stdout
    assert "shown MCC" in done.stdout
    assert (level(kmers, "invented")["level"]) == "disputed"


@pytest.mark.nightly  # in the gate, tests of the level by its parts
@pytest.mark.parametrize("copied", ["every unscored"], indirect=True)
def test_scores_of_an_unknown_scorer_are_not_confirmed_by_an_honest_receipt(kmers, copied):
    """An earlier run, which names no scorer, is compared in its canonical cells alone."""
    claim_canonical(copied, kmers.root / "unscored.receipt")
    honest = json.loads(copied.read_bytes())
    copied.write_text(json.dumps(invented(honest)), encoding="utf-8")
    done = audited(kmers, "unscored")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agrees: 39/39 cells" in done.stdout
    assert "not proved: that the scores on the board are right: " in done.stdout
    trust_level = level(kmers, "unscored")
    assert (trust_level["level"], trust_level["evidence"]) == ("self-reported", "checked")
    assert trust_level["recomputed"].startswith("cells recomputed from published embeddings: 39/39")
    assert trust_level["recomputed"].endswith("; the scores shown were not compared")
    kmers.run("geneb_ci", "build", "--output", "board")
    board = json.loads((kmers.root / "board/leaderboard.json").read_bytes())
    for regime in honest["results"]:
        (row,) = (row for row in board["data"][regime] if row["model"] == "unscored")
        assert row["macro_MCC"] > 0.75
        assert (row["submitted"], row["evidence"]) == ("self-reported", "checked")
        assert row["recomputed"] == trust_level["recomputed"]
        assert "audit" not in row
    done = kmers.run("geneb_ci", "recommend", "--evidence", "audited", check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "meets evidence audited or more" in done.stdout + done.stderr
    done = kmers.run("geneb_ci", "audit", "verify", "--evidence", "audited", check=False)
    assert done.returncode == 11
    assert "(sha256 " in done.stdout
    assert ": checked, expected audited: no audit of tasks counts" in done.stdout


@pytest.mark.parametrize("copied", ["coarse"], indirect=True)
def test_a_receipt_in_bfloat16_is_never_drawn_from(kmers, copied):
    document = json.loads(copied.read_bytes())
    document["receipt"]["compute_dtype"] = "bfloat16"
    document["run"]["embedding"]["dtype"] = "bfloat16"
    copied.write_text(json.dumps(document), encoding="utf-8")
    kmers.run("geneb_ci", "audit", "commit", "submissions/coarse.json", "--output", "c.json")
    done = kmers.run("geneb_ci", "audit", "plan", "c.json", "--rows", "standard", check=False)
    assert done.returncode == 11
    assert "the receipt is weak: its embeddings were computed in bfloat16" in done.stderr


@pytest.mark.parametrize("copied", ["doubled"], indirect=True)
def test_a_commitment_binds_the_root(kmers, copied):
    """Another root is another submission, and so another commitment."""
    words = ("geneb_ci", "audit", "commit", "submissions/doubled.json")
    before = json.loads(kmers.run(*words).stdout)
    root = json.loads(copied.read_bytes())["receipt"]["root"]
    rewrite(copied, kmers.root / "doubled.receipt", "mini_tf", lambda rows, _l, _t: rows * 2)
    after = json.loads(kmers.run(*words).stdout)
    assert json.loads(copied.read_bytes())["receipt"]["root"] != root
    assert after["commitment"]["submission_sha256"] != before["commitment"]["submission_sha256"]
    assert after["sha256"] != before["sha256"]


NOISY = """
import numpy as np
from reference_harness.extractors.kmer import KmerExtractor


class Noisy(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        embeddings = super().extract_embeddings(sequences, batch_size)
        noise = np.random.default_rng().standard_normal(embeddings.shape)
        return (embeddings * (1 + 3e-3 * noise)).astype(np.float32)
"""


@pytest.mark.nightly  # in the gate, without commands: tests/receipt/test_attacks.py
@pytest.mark.parametrize("copied", ["set aside"], indirect=True)
def test_an_extractor_that_does_not_repeat_itself_ends_an_audit_and_differs_by_tasks(kmers, copied):
    copied.rename(kmers.root / copied.name)  # the board would have no row of some tasks
    with kmers.without_audits():
        code = kmers.root / "submissions/extractors/noisy.py"
        code.parent.mkdir(exist_ok=True)
        code.write_text(NOISY, encoding="utf-8")
        noisy = ("--extractor", "submissions/extractors/noisy.py:Noisy", "--option", "k=2")
        harnessed(kmers, "noisy", *noisy, "--tasks", "mini_tf")
        done = audited(kmers, "noisy")
        (aborted,) = kmers.root.glob("leaderboard/audits/noisy/*.aborted.json")
        assert done.returncode == 3
        assert "the receipt is weak: in another batch the extractor gives the same " in done.stderr
        message = (
            "draw whole tasks: `geneb-ci audit plan COMMITMENT --sample tasks`; this run is "
            "recorded as aborted: commit "
        )
        assert f"{message}{aborted.relative_to(kmers.root)} to the main branch" in done.stderr

        kmers.run("geneb_ci", "audit", "plan", "c.json", *BEACON, "--output", "tasks.json")
        done = kmers.run("geneb_ci", "audit", "run", "tasks.json", "--key", "key.pem", check=False)
        assert done.returncode == 11, done.stdout + done.stderr
        assert "differs: an embedding depends on the order or the batch of its " in done.stdout
        assert outcome_in(record_of(kmers, "noisy"))["verdict"] == "differs"
        shutil.rmtree(code.parent)
        (kmers.root / "submissions/noisy.json").unlink()
    (kmers.root / copied.name).rename(copied)


@pytest.mark.nightly  # in the gate, words as above
def test_a_transformer_is_audited_by_one_command(hub, hub_settings, tmp_path_factory):
    installation = installed(tmp_path_factory, **hub_settings)
    installation.torch = True
    folder = save("bert", installation.root.parent / "tiny")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    revision = hub.create("models/geneb/with-receipt", files).head.oid
    model = ("--model", "geneb/with-receipt", "--option", f"revision={revision}")
    some = ("--tasks", "mini_splice,mini_tf")
    harnessed(installation, "tiny", "--extractor", "huggingface", *model, *some)
    words = (
        *("geneb_ci", "audit", "submissions/tiny.json", *EMBEDDINGS, str(ROWS), *BEACON),
        *("--receipt", "tiny.receipt", "--key", "key.pem", "--work", "kept"),
    )
    done = installation.run(*words, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"^cost: at most [\d,]+ embeddings, 1,315 variants and [\d,]+ decoys to embed",
        done.stdout,
        re.MULTILINE,
    )
    assert "agrees: 6/6 cells" in done.stdout
    record = record_of(installation, "tiny")
    before = record.read_bytes()
    again = installation.run(*words)
    assert "embedding" not in again.stderr, "what is finished is not run again"
    assert record_of(installation, "tiny").read_bytes() == before
