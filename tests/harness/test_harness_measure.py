"""What a run measures beside its scores: the letters read, the rows, and their scale."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.check.rules.measured import SCALE_EFFECT_MAX
from reference_harness.embedding.extractor_calls import unit_embeddings
from reference_harness.extractors.base import LetterCounts
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.loading.loader import load
from reference_harness.receipt.rounding import WidenedEmbeddings, rounded
from reference_harness.run.measure import embedding_facts, letters_of
from tests.harness.support import Harness

SEQUENCES = ["ACGTTGCAAC" * 6, "TTGACCATGA" * 5, "GGATCCTTAA" * 4]
GIVEN = 150

# Each reads some of a sequence, by its `part`, and says nothing of it.
READS = """
import numpy as np
from .base import BaseEmbeddingExtractor, LetterCounts

class Reads(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", 512, "right", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def part(self, sequence):
        return sequence

    def read_letters(self, sequences):
        return LetterCounts(len(sequences[0]), len(sequences[0]), 0, 1, 0)

    def extract_embeddings(self, sequences, batch_size=8):
        return np.array([self.row(self.part(s)) for s in sequences], dtype="float32")

    def row(self, text):
        codes = np.array([[c == x for x in "ACGT"] for c in text], dtype=float)
        place = np.cos(np.arange(len(text)))[:, None]
        return np.concatenate([codes.mean(axis=0), (codes * place).mean(axis=0)])

class First(Reads):
    def part(self, sequence):
        return sequence[:10]

class Last(Reads):
    def part(self, sequence):
        return sequence[-20:]

class Middle(Reads):
    def part(self, sequence):
        return sequence[5:25]

class WholeWords(Reads):
    def part(self, sequence):
        return sequence[: len(sequence) - len(sequence) % 7]

class Windows(Reads):
    def row(self, text):
        parts = [text[i : i + 16] for i in range(0, len(text), 16)]
        return np.mean([super(Windows, self).row(part) for part in parts], axis=0)

class Strands(Reads):
    def row(self, text):
        other = text[::-1].translate(str.maketrans("ACGT", "TGCA"))
        return super().row(text) + super().row(other)

class Maximum(Reads):
    def row(self, text):
        words = [text[i : i + 3] for i in range(len(text) - 2)]
        numbers = np.array([[hash_of(w, k) for k in range(64)] for w in words])
        return numbers.max(axis=0)

class Half(Reads):
    def extract_embeddings(self, sequences, batch_size=8):
        return super().extract_embeddings(sequences).astype("float16")

class Fails(Reads):
    def part(self, sequence):
        raise RuntimeError("no such model")

def hash_of(word, k):
    return sum((k + 3) ** n * ord(c) for n, c in enumerate(word)) % 97
"""


def measured(folder: Path, name: str, sequences: Sequence[str] = SEQUENCES) -> Any:
    (folder / "reads.py").write_text(READS)
    return letters_of(load(f"{folder}/reads.py:{name}"), sequences)


@pytest.mark.parametrize(
    ("name", "read", "cut"),
    [
        ("First", 30, 3), ("Last", 60, 3), ("Middle", 60, 3), ("WholeWords", 140, 3),
        ("Reads", GIVEN, 0), ("Windows", GIVEN, 0), ("Strands", GIVEN, 0), ("Half", GIVEN, 0),
    ],
)  # fmt: skip
def test_letters_are_seen_by_changing_them_whatever_an_extractor_says(tmp_path, name, read, cut):
    content = measured(tmp_path, name).read
    assert (content.method, content.sequences, content.given) == ("changed letters", 3, GIVEN)
    assert (content.read, content.cut) == (read, cut)


def test_a_maximum_hides_few_letters(tmp_path):
    assert measured(tmp_path, "Maximum").read.read >= 0.97 * GIVEN


def test_why_letters_are_unknown_is_said(tmp_path):
    letters = measured(tmp_path, "Fails")
    assert letters.read is None
    assert letters.reason.startswith("not measured: ")
    assert "no such model" in letters.reason


def test_of_many_sequences_a_few_are_looked_at(tmp_path):
    many = [("ACGTTGCAAC" * 3)[:n] + "G" * k for n in (30, 20) for k in range(20)]
    assert measured(tmp_path, "First", many).read.sequences == 8


@pytest.mark.parametrize(
    ("sequence", "read"),
    [("ACGTACGT", 8), ("acgtACGT", 8), ("ACGTNACG", 4), ("NACGTACGTN", 8), ("ACG", 0), ("", 0)],
)
def test_k_mers_read_what_is_in_a_window_that_is_counted(sequence, read):
    extractor = KmerExtractor(k=4)
    reading = extractor.read_letters([sequence])
    assert (reading.given, reading.read) == (len(sequence), read)
    counted = round(float(extractor.extract_embeddings([sequence]).sum()))
    assert (reading.tokens > reading.unknown) == bool(counted)


def test_built_in_extractors_count_every_sequence():
    many = [word * 30 for word in ("ACGT", "AACC", "NNNN")] * 1000
    content = letters_of(load("kmer"), many).read
    assert content is not None
    assert (content.method, content.sequences) == ("tokens", 3000)
    assert (content.given, content.read, content.unknown) == (360_000, 240_000, 117_000)
    assert LetterCounts(*KmerExtractor().read_letters(many)).read == content.read


def facts(rows: Any, digests: Sequence[bytes] | None = None) -> Any:
    values = np.asarray(rows, dtype=np.float32)
    names = [bytes([n]) for n in range(len(values))] if digests is None else digests
    return embedding_facts([WidenedEmbeddings(*rounded([values]))[:]], names)


def test_rows_are_measured_as_they_are_scored():
    letters_read = facts([[3.0, 4.0], [3.0, 4.0], [-3.0, -4.0], [0.0, 10.0]])
    assert (letters_read.count, letters_read.distinct, letters_read.most_repeated) == (4, 3, 2)
    assert letters_read.norm == 5.0
    mean, norms = np.array([0.75, 3.5]), np.array([5, 5, 5, 10])
    rows = np.array([[3, 4], [3, 4], [-3, -4], [0, 10]])
    assert letters_read.spread == pytest.approx(
        np.median(np.linalg.norm(rows - mean, axis=1)) / 5, 1e-5
    )
    assert letters_read.norm_spread == pytest.approx(norms.std() / 5, 1e-5)


def test_a_sequence_that_occurs_twice_counts_once():
    letters_read = facts([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]], [b"a", b"a", b"b"])
    assert (letters_read.count, letters_read.distinct, letters_read.most_repeated) == (2, 2, 1)


@pytest.mark.parametrize("columns", [1, 2, 5, 64])
@pytest.mark.parametrize("changed", [0, -1])
def test_embeddings_that_differ_in_one_number_are_told_apart(columns, changed):
    rows = np.ones((2000, columns), dtype=np.float32)
    rows[:, changed] = np.arange(2000) % 700
    letters_read = facts(rows, [number.to_bytes(2) for number in range(2000)])
    assert (letters_read.distinct, letters_read.most_repeated) == (700, 3)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 3e4])
def test_nearly_constant_rows_show_at_any_scale(scale):
    rows = np.ones((50, 8)) + 1e-4 * np.random.default_rng(0).normal(size=(50, 8))
    assert facts(scale * rows).spread < 0.001
    varied = np.random.default_rng(0).normal(size=(50, 8))
    assert facts(scale * varied).spread > 0.5


def test_rows_of_zeros_are_measured():
    letters_read = facts(np.zeros((3, 4)))
    assert (
        letters_read.distinct,
        letters_read.most_repeated,
        letters_read.norm,
        letters_read.spread,
    ) == (1, 3, 0.0, 0.0)


@pytest.mark.parametrize("factor", [1e-3, 30.0, 100.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_unit_scale_takes_any_factor_away(factor, dtype):
    rows = np.random.default_rng(1).normal(size=(20, 16))
    unit, other = (unit_embeddings(np.asarray(x, dtype=dtype)) for x in (rows, factor * rows))
    assert unit.dtype == other.dtype == dtype
    np.testing.assert_allclose(unit, other, rtol=1e-5, atol=2e-3 if dtype == "float16" else 0)
    np.testing.assert_allclose(np.square(unit.astype(float)).mean(axis=1), 1, rtol=5e-3)
    assert not unit_embeddings(np.zeros((2, 3), dtype)).any()


TASKS = "mini_histone,mini_splice"


def record_of(harness: Harness, *words: str, tasks: str = TASKS) -> dict[str, Any]:
    done = harness("run", "--tasks", tasks, "--regimes", "full", "--output", "r.json", *words)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads((harness.folder / "r.json").read_text())
    return record | {"stderr": done.stderr}


SCALED = """
from reference_harness.extractors.kmer import KmerExtractor

class Scaled(KmerExtractor):
    def extract_embeddings(self, sequences, batch_size=8):
        return super().extract_embeddings(sequences, batch_size) * FACTOR
"""


@pytest.mark.parametrize(
    "factor",
    [
        0.1,
        pytest.param(0.01, marks=pytest.mark.nightly),
        pytest.param(30, marks=pytest.mark.nightly),
    ],
)
def test_a_factor_shows_beside_the_scores_that_a_declared_scale_gives(
    harness: Harness, factor: float
) -> None:
    (harness.folder / "scaled.py").write_text(SCALED.replace("FACTOR", str(factor)))
    scaled = record_of(harness, "--extractor", "scaled.py:Scaled", "--option", "k=3")
    row = ("--submission", "s.json", "--format-version", "1.2")
    unit = record_of(harness, "--option", "k=3", "--option", "scale=unit", *row)
    assert unit["embedding"]["scale"] == "unit"
    submitted = json.loads((harness.folder / "s.json").read_text())
    assert submitted["properties"] == unit["properties"]
    assert unit["properties"]["letters-read"]["outcome"] == "verified"
    apart = []
    for task in TASKS.split(","):
        of_record = unit["tasks"][task]["regimes"]["full"]["scores"]
        mine = scaled["tasks"][task]
        assert mine["measured"]["unit_scale"]["scores"] == pytest.approx(of_record, abs=0.02)
        apart.append(mine["regimes"]["full"]["scores"]["MCC"] - of_record["MCC"])
        assert unit["tasks"][task]["measured"]["unit_scale"] is None
    assert abs(np.mean(apart)) > SCALE_EFFECT_MAX, "as the rule scale-moves-scores has it"


@pytest.mark.nightly  # minutes: every task of GENEB-mini, nine times
@pytest.mark.parametrize(
    ("name", "is_warned"),
    [
        *dict.fromkeys(("Float16", "Bfloat16", "Autocast", "FirstToken", "Windows"), False).items(),
        *dict.fromkeys(("BothStrands", "OneHot", "OneByOne"), False).items(),
        ("Normalised", True),
    ],
)
def test_extractors_without_a_fault_are_not_warned_of_their_scale(
    harness: Harness, name: str, is_warned: bool
) -> None:
    """But for one whose embeddings have length 1: at unit scale they gain 0.024."""
    module = Path(__file__).parent / "faulty/legitimate.py"
    done = harness("run", "--extractor", f"{module}:{name}", "--output", "r.json")
    assert done.returncode == 0, done.stderr
    differences = []
    for task in json.loads((harness.folder / "r.json").read_text())["tasks"].values():
        unit = task["measured"]["unit_scale"]
        of_record = task["regimes"][unit["regime"]]["scores"]
        differences.append(unit["scores"]["MCC"] - of_record["MCC"])
    assert len(differences) == 13
    assert bool(abs(np.mean(differences)) > SCALE_EFFECT_MAX) == is_warned


def test_a_run_says_which_letters_were_cut(harness: Harness) -> None:
    (harness.folder / "reads.py").write_text(READS)
    record = record_of(harness, "--extractor", "reads.py:First", tasks="mini_splice")
    text = " ".join(record["stderr"].split())
    assert (
        "of letters are read, and 8 of 8 sequences examined are cut at max_length=512: raise "
        "max_length, or declare the truncation"
    ) in text
    assert record["tasks"]["mini_splice"]["measured"]["letters"]["cut"] == 8
