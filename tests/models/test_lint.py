"""Facts of an entry that contradict each other, its row or another author's table."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from geneb_ci.cli.main import cli
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.models.entry import ModelEntry
from geneb_ci.models.lint import (
    contradictions,
    contradictions_with_facts,
    contradictions_with_row,
    unknown_fact_explanations,
)
from geneb_ci.models.registry import ModelRegistry
from tests.each import each
from tests.paths import ROOT, SUBMISSIONS

REGISTRY = ModelRegistry(find_layout(ROOT))
HYENA = "hyenadna-large-1m-seqlen-hf"


def entry_of(model_id: str) -> ModelEntry:
    read = REGISTRY.entry(model_id)
    assert read is not None
    return read.entry


def changed(model_id: str, **parts: Any) -> ModelEntry:
    """Return a public entry with keys replaced, those of a table by a mapping."""
    value = entry_of(model_id).model_dump(by_alias=True)
    for key, part in parts.items():
        value[key] = {**value[key], **part} if isinstance(part, dict) else part
    return ModelEntry.model_validate(value)


def test_no_public_entry_contradicts_itself_or_its_row():
    for path in sorted(SUBMISSIONS.glob("*.json")):
        entry, meta = entry_of(path.stem), json.loads(path.read_bytes())["meta"]
        assert [*contradictions(entry), *contradictions_with_row(entry, meta)] == [], path.stem
        assert entry.licence, path.stem


CONTRADICTIONS: dict[str, tuple[tuple[str, dict[str, Any]], str]] = {
    "other tokens": (("DNABERT-S", {"tokenization": "k-mer"}), "needs tokenizer kmer, not 'bpe'"),
    "unknown licence": (
        ("GROVER", {"sources": {"licence": None}}),
        "does not name the searched sources",
    ),
    "too long": (("GROVER", {"published": {"max_length": 1024}}), "the model takes at most 512"),
    "other length": (("GROVER", {"max_tokens": 600, "published": {"max_length": 600}}), "600"),
    "more letters": ((HYENA, {"max_letters": 2_000_000}), "of one letter"),
    "more trained": ((HYENA, {"params_trained": 60_000_000}), "but params is only "),
    "other pooling": (("DNABERT-S", {"published": {"pooling": "attention-mask-mean"}}), "'cls'"),
    "kernels": (("GROVER", {"loading": {"quirks": ["cuda_kernels"]}}), "gpu_only is false"),
    "windows": (("splicebert-1024nt", {"loading": {"quirks": ["not_on_hub"]}}), "truncation"),
    "k-mers": (
        ("GROVER", {"loading": {"quirks": ["kmer_tokens"]}}),
        "quirks has kmer_tokens, but tokenizer is 'bpe'",
    ),
    "elsewhere": (("GROVER", {"loading": {"quirks": ["not_on_hub"]}}), "kind of the weights"),
    "code": (("GROVER", {"loading": {"remote_code": True}}), "no file of code"),
}


@each("name", CONTRADICTIONS)
def test_a_contradiction_inside_an_entry_is_named(name):
    (model_id, parts), text = CONTRADICTIONS[name]
    assert text in "; ".join(contradictions(changed(model_id, **parts)))


def test_an_entry_is_compared_with_its_row():
    assert "54,600,000" in next(contradictions_with_row(entry_of(HYENA), {"params": 6_600_000}))
    meta = {"url": "https://huggingface.co/other/GROVER"}
    assert "PoetschLab/GROVER" in next(contradictions_with_row(entry_of("GROVER"), meta))


FACTS: dict[str, Any] = {
    "source": {
        "kind": "huggingface",
        "where": "togethercomputer/evo-1-131k-base",
        "revision": "c206aab77ae5967a069c4200ecb1858588528c9d",
        "branch": "1.1_fix",
    },
    "tokenizer": {"kind": "own"},
    "gpu_only": True,
    "width": {"embedding_dim": 4096},
    "params_gb_fp32": 25.8,
    "known_good": {"torch": "2.1.2", "transformers": None},
}
OTHER_FACTS = [
    ({"source": {**FACTS["source"], "branch": "main"}}, "branch: the entry has '1.1_fix'"),
    ({"source": {**FACTS["source"], "revision": "0" * 40}}, "does not pin"),
    ({"source": {**FACTS["source"], "where": "evo"}}, "location"),
    ({"source": {**FACTS["source"], "kind": "zenodo"}}, "kind"),
    ({"tokenizer": {"kind": "char"}}, "tokenizer: the entry has 'own', but the table has 'char'"),
    ({"width": {"embedding_dim": 512}}, "embedding_dim"),
    ({"params_gb_fp32": 12.0}, "files of 12.0 GB have 3,000,000,000"),
    ({"known_good": {"torch": "2.2.0"}}, "loaded_with: torch 2.1.2, but the table has 2.2.0"),
    ({"flags": ["windows"]}, "quirks: only the table has windows"),
]


@pytest.mark.parametrize(("other", "text"), OTHER_FACTS)
def test_an_entry_is_compared_with_a_table(other: dict[str, Any], text: str):
    entry = entry_of("evo-1-131k-base")
    assert list(contradictions_with_facts(entry, FACTS)) == []
    assert text in "; ".join(contradictions_with_facts(entry, FACTS | other))


def test_verify_names_what_contradicts_and_what_is_unknown(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    table = tmp_path / "facts.json"
    table.write_text(json.dumps({"GROVER": {"width": {"embedding_dim": 1}}}), encoding="utf-8")
    command = ["models", "verify", "GROVER", "--facts", str(table)]
    done = CliRunner().invoke(cli, command, standalone_mode=False)
    assert done.return_value == 11
    assert "GROVER: wrong: embedding_dim: the entry has 768, but the table has 1" in done.output
    assert "GROVER: unknown: licence: " in done.output
    table.write_text("[]", encoding="utf-8")
    assert isinstance(
        CliRunner().invoke(cli, command, standalone_mode=False).exception, UsageProblem
    )


def test_what_is_unknown_stands_in_the_documentation():
    page = (ROOT / "docs/reference/models.md").read_text(encoding="utf-8")
    listed = {
        (name, fact) for name in REGISTRY for fact in unknown_fact_explanations(entry_of(name))
    }
    assert ("enformer-official-rough", "run") in listed
    assert all(f"| {name} | {fact} | " in page for name, fact in listed)
