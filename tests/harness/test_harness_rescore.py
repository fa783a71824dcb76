"""Sequences out, embeddings in, scores and jittered copies out: as an audit calls it."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from reference_harness import mini
from reference_harness.data import benchmark
from reference_harness.embedding import noise
from reference_harness.formats.base import json_schema
from reference_harness.formats.rescored import Rescored
from reference_harness.generate import SCHEMAS
from reference_harness.loading.loader import load
from reference_harness.probe.logistic import few_shot_indices
from reference_harness.probe.metrics import scores_of
from reference_harness.rescore.scoring import FEW_SHOT_COPIES_FACTOR
from tests.harness.support import REPOSITORY, Harness

TASKS = ("mini_mouse", "mini_species")
COPIES = 2
NOTHING, USAGE = 3, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with sequences and k-mer embeddings, and of the first task a rescoring and a
    run record.
    """
    harness = Harness(tmp_path_factory.mktemp("rescore"))
    done = harness("sequences", "--tasks", ",".join(TASKS), "--output", "sequences.txt")
    assert (done.returncode, done.stderr) == (0, "wrote sequences.txt: 1,040 sequences\n")
    lines = (harness.folder / "sequences.txt").read_text().splitlines()
    np.save(harness.folder / "e.npy", load("kmer").extractor.extract_embeddings(lines))
    done = harness(*words(TASKS[:1]), "--copies", COPIES, "--output", "rescored.json")
    assert done.returncode == 0, done.stderr
    run = harness("run", "--tasks", TASKS[0], "--output", "record.json", "--quiet")
    assert run.returncode == 0, run.stderr
    return harness.folder


def words(tasks: tuple[str, ...] = TASKS, embeddings: str = "e.npy") -> list[str]:
    document = {
        "--tasks": ",".join(tasks), "--sequences": "sequences.txt", "--embeddings": embeddings,
        "--noise": "float16", "--seed": "7", "--jobs": "2",
    }  # fmt: skip
    return ["rescore", *(word for pair in document.items() for word in pair)]


@pytest.fixture(scope="module")
def made(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "rescored.json").read_text())
    return document


def test_sequences_are_distinct_unlabelled_and_in_an_order_that_tells_nothing(folder: Path) -> None:
    lines = (folder / "sequences.txt").read_text().splitlines()
    data = [mini.load(task) for task in TASKS]
    assert set(lines) == {s for d in data for split in (d.train, d.test) for s in split.sequences}
    digests = [hashlib.sha256(line.encode()).hexdigest() for line in lines]
    assert digests == sorted(set(digests))


def test_the_base_is_what_a_run_gives(folder: Path, made: dict[str, Any]) -> None:
    record = json.loads((folder / "record.json").read_text())

    def timeless(regime: dict[str, Any]) -> dict[str, Any]:
        return regime | {"seconds": 0}

    ran, again = (document["tasks"][TASKS[0]] for document in (record, made))
    assert again["data_sha256"] == ran["data_sha256"]
    for name, regime in ran["regimes"].items():
        assert timeless(again["regimes"][name]["base"]) == timeless(regime)


def test_the_file_is_what_the_schema_and_the_model_say(made: dict[str, Any]) -> None:
    schema = json.loads((REPOSITORY / "schemas" / "rescored.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(made, schema)
    assert Rescored.model_validate(made).model_dump() == made
    assert schema == json.loads(json.dumps(json_schema(*SCHEMAS["rescored"])))
    assert made["noise"] == {
        "dtype": "float16",
        "units": noise.DEVIATION_IN_ROUNDOFFS["float16"],
        "stress": noise.STRESS_FACTOR,
        "seed": 7,
        "copies": COPIES,
    }


def test_every_regime_has_its_copies(made: dict[str, Any]) -> None:
    for task in made["tasks"].values():
        for name, regime in task["regimes"].items():
            due = COPIES if name == "full" else FEW_SHOT_COPIES_FACTOR * COPIES
            assert len(regime["plain"]) == due
            assert len(regime["stressed"]) in ({0, due} if name == "full" else {due})
            for copy in regime["plain"]:
                assert len(copy["flips"]) == len(copy["per_seed"]["MCC"]) == 5


def test_flips_bound_what_the_scores_move(made: dict[str, Any]) -> None:
    """Accuracy moves by one n-th a flip at most, and not at all without one."""
    seen = 0
    for task in made["tasks"].values():
        for regime in task["regimes"].values():
            base = regime["base"]["per_seed"]["Acc"]
            assert base == [scores_of(np.array(m)).Acc for m in regime["base"]["confusion"]]
            for copy in (*regime["plain"], *regime["stressed"]):
                seen += sum(copy["flips"])
                for flips, was, now in zip(
                    copy["flips"], base, copy["per_seed"]["Acc"], strict=True
                ):
                    assert abs(now - was) * 160 <= flips + 1e-9
    assert seen > 0


def test_a_regime_alone_has_the_scores_that_it_has_among_all(
    folder: Path, made: dict[str, Any]
) -> None:
    """Copies too; the probes of the other regimes still decide on further sequences."""
    words_of_it = words(TASKS[:1])
    harness = Harness(folder)
    varied = harness(
        *("variants", "--task", TASKS[0], "--seed", "s", "--rows", "5", "--support"),
        *("--output", "v.json"),
    )
    assert varied.returncode == 0, varied.stderr
    arguments = json.loads((folder / "v.json").read_text())["rows"]
    rows = [argument["sequence"] for argument in arguments]
    np.save(folder / "v.npy", load("kmer").extractor.extract_embeddings(rows))
    further = ("--further", "v.json", "--further-embeddings", "v.npy", "--other-draws", "s")
    some = ("--regimes", "1shot", "--copies", COPIES, *further, "--output", "one.json")
    done = harness(*words_of_it, *some)
    assert done.returncode == 0, done.stderr
    task = json.loads((folder / "one.json").read_text())["tasks"][TASKS[0]]
    alone, among = task["regimes"], made["tasks"][TASKS[0]]["regimes"]
    assert list(alone) == ["1shot"]
    base = among["1shot"]["base"] | {"seconds": alone["1shot"]["base"]["seconds"]}
    assert alone["1shot"] == among["1shot"] | {"base": base}
    decided = task["decisions"]
    assert set(decided["others"]) == {"10shot, record", "1shot, record"}
    labels = mini.load(TASKS[0]).train.labels
    bench = benchmark.mini().protocol
    drawn = [few_shot_indices(labels, k, s) for k in bench.few_shot_k.values() for s in bench.seeds]
    supported = [argument["row"] for argument in arguments if argument["split"] == "support"]
    assert supported == sorted({int(row) for fit in drawn for row in fit})
    for name, fits in decided["few_shot"].items():
        published = among[name]["base"]["per_seed"]["MCC"]
        assert fits["published"] == published
        assert (len(fits["others"]), len(set(fits["others"])) > 10) == (20, True)
        assert len(decided["varied"][name]) == len(published)
        assert 0 < np.abs(np.subtract(decided["varied"][name], published)).mean() < 0.1


@pytest.mark.nightly  # in the gate, predictions of record by their digests
def test_the_same_words_give_the_same_numbers(folder: Path, made: dict[str, Any]) -> None:
    """Also beside another task."""
    harness = Harness(folder)
    done = harness(*words(), "--copies", COPIES, "--output", "again.json")
    assert done.returncode == 0, done.stderr
    tasks = json.loads((folder / "again.json").read_text())["tasks"]
    assert list(tasks) == list(TASKS)
    again = tasks[TASKS[0]]["regimes"]
    for name, regime in made["tasks"][TASKS[0]]["regimes"].items():
        assert again[name]["plain"] == regime["plain"]
        assert again[name]["stressed"] == regime["stressed"]


def pickled(path: Path) -> None:
    np.save(path, np.array([[{"a": 1}]], dtype=object), allow_pickle=True)


def not_finite(path: Path) -> None:
    rows = np.ones((1040, 4), dtype=np.float32)
    rows[5000 % 1040, 2] = np.nan
    np.save(path, rows)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (pickled, "expected a .npy file of numbers"),
        (lambda path: path.write_bytes(b""), "expected a .npy file of numbers"),
        (lambda path: path.write_bytes(b"\x93NUMPY\x01\x00"), "expected a .npy file of numbers"),
        (lambda path: np.save(path, np.ones(1040)), "shape (1040,), expected (sequences, columns)"),
        (lambda path: np.save(path, np.ones((1040, 0))), "shape (1040, 0), expected"),
        (lambda path: np.save(path, np.ones((1040, 4), ">f4")), "numbers of type >f4"),
        (lambda path: np.save(path, np.ones((1040, 4), int)), "numbers of type <i8"),
        (
            lambda path: np.save(path, np.ones((1039, 4))),
            "found 1039 embeddings, expected 1040",
        ),
        (not_finite, "embedding 840 has a number that is not finite"),
    ],
    ids=["pickle", "empty", "cut", "flat", "no-columns", "byte-order", "integers", "rows", "nan"],
)
def test_embeddings_that_are_none_are_refused(
    folder: Path, write: Callable[[Path], None], says: str
) -> None:
    write(folder / "bad.npy")
    harness = Harness(folder)
    done = harness(*words(embeddings="bad.npy"), "--output", "none.json")
    assert (done.returncode, done.stdout) == (NOTHING, "")
    assert done.stderr.startswith("error: bad.npy: ")
    assert says in done.stderr
    assert not (folder / "none.json").exists()


@pytest.mark.parametrize(
    ("tasks", "more", "code", "says"),
    [
        (("mini_tf",), (), NOTHING, "task mini_tf: 520 of its sequences are not in sequences.txt"),
        (("nope",), (), USAGE, "task 'nope': GENEB-mini has no such task"),
        ((",",), (), USAGE, "--tasks names no task"),
        (TASKS, ("--regimes", "2shot"), USAGE, "--regimes '2shot'"),
        (TASKS, ("--benchmark", "x"), USAGE, "add --data DIR"),
        (TASKS, ("--copies", 1), USAGE, "1 is not in the range"),
    ],
    ids=["other-task", "no-task", "empty", "no-regime", "benchmark", "copies"],
)
def test_faults_are_sentences(
    folder: Path, tasks: tuple[str, ...], more: tuple[object, ...], code: int, says: str
) -> None:
    done = Harness(folder)(*words(tasks), *more, "--output", "none.json")
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
