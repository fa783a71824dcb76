"""The shape of an extractor: what a cheat may change without cost leaves it as it is."""

import ast

import pytest

from geneb_ci.audit.code_digest import code_shape
from geneb_ci.audit.errors import AuditRefused
from tests.paths import ROOT

MODULE = b'''\
"""An extractor."""

import numpy as np

from helper import letters

WIDTH = 4


def spare():
    return 1


class Kmers:
    """Counts words of four letters."""

    def __init__(self, model_name: str = "", device: str = "cpu") -> None:
        self.width = WIDTH  # letters of a word

    def embed(self, sequences: list[str]) -> np.ndarray:
        found = np.zeros((len(sequences), 4**self.width), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            for word in letters(sequence, self.width):
                found[row, word] += 1
        return found

    def close(self):
        pass
'''
HELPER = b"""\
def letters(sequence, width):
    for start in range(len(sequence) - width + 1):
        yield hash(sequence[start : start + width])
"""
REWRITTEN = b"""\
import numpy
from beside import words_of as all_words

SIZE = 4
class Fingerprint:
    def close(self): return
    def embed(self, texts):
        table = numpy.zeros( (len(texts), 4 ** self.size), dtype=numpy.float32 )
        for number, text in enumerate(texts):
            for piece in all_words(text, self.size):
                table[number, piece] += 1
        return table
    def __init__(self, model_name='', device='cpu'):
        'Another text.'
        self.size: int = SIZE
"""
BESIDE = b"def words_of(a, b):\n  for c in range(len(a)-b+1):\n    yield hash(a[c:c+b])\n"


def shape(module: bytes, helper: bytes = HELPER, name: str = "helper", of: str = "Kmers") -> str:
    return code_shape({"own.py": module, f"{name}.py": helper}, "own.py", of)


def test_names_comments_types_and_order_do_not_matter():
    rewritten = REWRITTEN.replace(b"return\n", b"pass\n")
    assert shape(rewritten, BESIDE, "beside", "Fingerprint") == shape(MODULE)


def test_dead_code_does_not_matter():
    assert shape(MODULE.replace(b"return 1", b"return 2")) == shape(MODULE)
    assert shape(MODULE + b"\n\nclass Unused:\n    x = 1\n") == shape(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"WIDTH = 4", b"WIDTH = 6"),
        (b"+= 1", b"+= 2"),
        (b"np.float32", b"np.float64"),
        (b"np.zeros", b"np.ones"),
        (b'device: str = "cpu"', b'device: str = "cuda"'),
    ],
)
def test_what_is_computed_matters(old, new):
    assert old in MODULE
    assert shape(MODULE.replace(old, new)) != shape(MODULE)


def test_a_module_beside_it_matters():
    assert shape(MODULE, HELPER.replace(b"+ 1", b"+ 2")) != shape(MODULE)


def test_two_classes_of_one_module_are_two_methods():
    two = MODULE + b"\n\nclass Other(Kmers):\n    def embed(self, sequences):\n        return 0\n"
    assert shape(two, of="Other") != shape(two)


def test_what_python_cannot_parse_is_taken_as_it_is():
    assert shape(b"an example") == shape(b"an example") != shape(b"another example")
    assert shape(b"\x00") != shape(b"(" * 10_000)


EXTRACTORS = sorted((ROOT / "reference_harness/extractors").glob("*.py"))


@pytest.mark.nightly  # in the gate, shapes of made-up modules
def test_the_extractors_of_the_harness_have_shapes_of_their_own():
    files = {path.name: path.read_bytes() for path in EXTRACTORS}
    modules_and_classes = {
        (name, line.split()[1].split(b"(")[0].rstrip(b":").decode())
        for name, raw in files.items()
        for line in raw.splitlines()
        if line.startswith(b"class ") and b"Error(" not in line  # errors differ by name alone
    }
    shapes = {
        module_and_class: code_shape(files, *module_and_class)
        for module_and_class in modules_and_classes
    }
    assert len(shapes) > 3
    assert len(set(shapes.values())) == len(shapes)


def test_a_repository_without_modules_beside_it():
    assert code_shape({"own.py": MODULE}, "own.py", "Kmers") != shape(MODULE)


@pytest.mark.parametrize(
    "source", [b"x = " + b"-" * 100_000 + b"1", b"x = " + b"(" * 10_000, b"x = a" + b".b" * 100_000]
)
def test_a_module_that_is_too_deep_for_python_has_a_shape(source):
    assert len(code_shape({"own.py": source}, "own.py", "X")) == 64


@pytest.mark.parametrize("own", [None, b"import more"])
def test_source_that_would_exhaust_the_auditor_is_not_parsed(monkeypatch, own):
    real, parsed = ast.parse, []

    def noted(raw: bytes) -> ast.Module:
        parsed.append(raw)
        return real(raw)

    monkeypatch.setattr(ast, "parse", noted)
    large = b"x = [" + b"0," * 200_000 + b"]"
    modules = {"own.py": large} if own is None else {"own.py": own, "more.py": large}
    with pytest.raises(AuditRefused, match=r"bytes or more, expected at most 300,000"):
        code_shape(modules, "own.py", "X")
    assert large not in parsed
