"""What the source of an extractor says of whether the harness can call it."""

import pytest

from geneb_ci.check.interface import PARSED_BYTES_MAX, interface_fault
from tests.each import each

CALLABLE = {
    "the usual one": "class Own:\n def extract_embeddings(self, sequences, batch_size=1): ...",
    "other names": "class Own:\n def extract_embeddings(this, dna, batch_size): ...",
    "any arguments": "class Own:\n def extract_embeddings(self, *values, **options): ...",
    "by keyword alone": "class Own:\n def extract_embeddings(self, dna, *, batch_size=8): ...",
    "more options": "class Own:\n def extract_embeddings(self, dna, batch_size=1, layer=2): ...",
    "inherited": "class Own(Base): ...",
    "assigned": "class Own:\n extract_embeddings = embed",
    "decorated": "class Own:\n @torch.no_grad()\n def extract_embeddings(*a): ...",
    "in a condition": "class Own:\n if new:\n  def extract_embeddings(self): ...",
    "an imported class": "from .other import Own",
    "every name of another module": "from .other import *",
    "a computed class": "Own = make()",
    "a class in a condition": "try:\n class Own: ...\nexcept ImportError: ...",
    "a strange escape": "class Own(Base):\n letters = '\\d'",
    "defined twice": "class Own:\n def extract_embeddings(self): ...\n"
    " def extract_embeddings(self, dna, batch_size): ...",
    "too long to be parsed": "#" * PARSED_BYTES_MAX + "\n(",
}
UNCALLABLE = {
    "no batch size": (
        "class Own:\n\n def extract_embeddings(self, dna): ...",
        3,
        "extract_embeddings(self, dna) cannot be called as extract_embeddings(sequences, batch_s",
    ),
    "an argument more": (
        "class Own:\n def extract_embeddings(self, dna: list, words, batch_size=1): ...",
        2,
        "extract_embeddings(self, dna, words, batch_size=...) cannot",
    ),
    "no self": ("class Own:\n def extract_embeddings(batch_size=1): ...", 2, "cannot be called"),
    "another method": (
        "class Own:\n def embed(self): ...",
        1,
        "Own has no method extract_embeddings",
    ),
    "another class": ("x = 1\nclass Other: ...", 1, "the module has no class Own"),
    "another language": ("x = 1\nlibrary(torch", 2, "the file is not valid Python: "),
    "brackets": ("(" * 10_000, 1, "the file"),
    "minus signs": ("-" * 100_000 + "1", 1, "the file"),
    "a long chain": ("a" + ".b" * 100_000, 1, "the file"),
    "a NUL": ("x = 1\0", 1, "the file"),
}


@each("name", CALLABLE)
@pytest.mark.filterwarnings("error")
def test_an_extractor_that_may_be_callable_has_no_fault(name):
    assert interface_fault(CALLABLE[name].encode(), "Own") is None


def test_a_row_that_names_no_class_has_no_fault():
    assert interface_fault(b"x = 1", "") is None


@pytest.mark.parametrize("name", UNCALLABLE)
def test_an_extractor_that_cannot_be_called_has_one_fault(name):
    code, line, message = UNCALLABLE[name]
    fault = interface_fault(code.encode(), "Own")
    assert fault is not None
    assert fault.line == line
    assert message in fault.message
