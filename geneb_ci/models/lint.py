"""Find contradictions in an entry of the model registry, and the facts that it declares unknown.

Each function compares facts that were written independently: keys of one entry, an entry and its
row, or an entry and another author's table of loading facts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from geneb_ci.models.entry import UNKNOWN_LICENCE, Loading, ModelEntry
from reference_harness.formats.text import quoted

_TOKENIZERS_BY_WORD = {
    "SN": ("char", "one-hot", "own"),
    "char": ("char", "one-hot", "own"),
    "BPE": ("bpe",),
    "BPE+k-mer": ("bpe", "kmer"),
    "k-mer": ("kmer",),
    "BioToken": ("own",),
    "mixed": ("own",),
}
"""Names of the tokenizers that make such tokens, by the paper's word for the tokens."""
_POOLING_OPTIONS = (
    ("cls-token", "cls"),
    ("penultimate", "penultimate"),
    ("attention-mask-mean", "mean"),
    ("unmasked-mean", "mean"),
    ("mean", "mean"),
    ("spatial-mean", "mean"),
)
"""Option of the extractor for a published pooling: beginning of the published text, and option."""
_COUNT_DIFFERENCE_MAX = 0.15
"""Maximum relative difference between the published number of weights and that of their files:
pretraining heads and rounding account for up to a seventh."""
_BYTES_PER_GB = 1e9
_BYTES_PER_WEIGHT = 4
_LETTER_TOKENIZERS = ("char", "one-hot")
"""Names of the tokenizers that make one token of each letter."""


def contradictions(entry: ModelEntry) -> Iterator[str]:
    """Yield a sentence for each contradiction between keys of an entry."""
    yield from _token_contradictions(entry)
    yield from _length_contradictions(entry)
    yield from _published_contradictions(entry)
    loading, run = entry.loading, entry.run
    params, trained = entry.params, entry.params_trained
    if trained is not None and params is None:
        yield f"params_trained is {trained:,}, but params is missing"
    elif trained is not None and params is not None and trained > params:
        yield f"params_trained is {trained:,}, but params is only {params:,}"
    if loading is not None and "cuda_kernels" in loading.quirks and not loading.gpu_only:
        yield "quirks has cuda_kernels, but gpu_only is false"
    options = entry.options if run is not None else {}
    if loading is not None and ("windows" in loading.quirks) != (
        options.get("truncation") == "windows"
    ):
        truncation = _option_text(options, "truncation")
        yield f"quirks {_has(loading, 'windows')} windows, but the extractor has {truncation}"
    if entry.weights is not None and loading is not None:
        is_elsewhere = entry.weights.kind not in ("huggingface", "none")
        if ("not_on_hub" in loading.quirks) != is_elsewhere and entry.weights.kind != "url":
            yield (
                f"quirks {_has(loading, 'not_on_hub')} not_on_hub, but the kind of the weights is "
                f"{entry.weights.kind!r}"
            )
        if loading.remote_code and not any(name.endswith(".py") for name in entry.weights.files):
            yield "remote_code is true, but no file of code is pinned"
    has_licence_sources = entry.sources is not None and entry.sources.licence is not None
    if entry.licence == UNKNOWN_LICENCE and not has_licence_sources:
        yield "the licence is unknown, but [sources] licence does not name the searched sources"


def _has(loading: Loading, quirk: str) -> str:
    """Return "has" or "lacks", for a message about the quirks of a model."""
    return "has" if quirk in loading.quirks else "lacks"


def _option_text(options: Mapping[str, str], option: str) -> str:
    """Return an option and its value, for a message."""
    return f"{option} = {quoted(options[option])}" if option in options else f"no option {option}"


def _token_contradictions(entry: ModelEntry) -> Iterator[str]:
    """Yield the contradictions between the tokens, the tokenizer and the quirks."""
    loading = entry.loading
    if loading is None:
        return
    tokenizer, word = loading.tokenizer, entry.tokenization
    if word in _TOKENIZERS_BY_WORD and tokenizer not in _TOKENIZERS_BY_WORD[word]:
        expected_tokenizers = " or ".join(_TOKENIZERS_BY_WORD[word])
        yield (
            f"tokenization is {word!r}, which needs tokenizer {expected_tokenizers}, not "
            f"{tokenizer!r}"
        )
    if ("kmer_tokens" in loading.quirks) != (tokenizer == "kmer"):
        yield f"quirks {_has(loading, 'kmer_tokens')} kmer_tokens, but tokenizer is {tokenizer!r}"


def _length_contradictions(entry: ModelEntry) -> Iterator[str]:
    """Yield the contradictions between the maximum lengths of an input."""
    published, run, max_tokens = entry.published, entry.run, entry.max_tokens
    cut_at = published.max_length if published is not None else None
    if cut_at is not None and max_tokens is not None and cut_at > max_tokens:
        yield (
            f"the published run kept {cut_at:,} tokens, but the model takes at most {max_tokens:,}"
        )
    length = run.options.get("max_length", "") if run is not None else ""
    if cut_at is not None and length.isdecimal() and int(length) != cut_at:
        yield f"the published run kept {cut_at:,} tokens, but the option max_length is {length}"
    tokenizer = entry.loading.tokenizer if entry.loading is not None else ""
    letters = entry.max_letters
    if (
        letters is not None
        and max_tokens is not None
        and tokenizer in _LETTER_TOKENIZERS
        and letters > max_tokens
    ):
        yield f"max_letters is {letters:,}, but at most {max_tokens:,} tokens of one letter fit"


def _published_contradictions(entry: ModelEntry) -> Iterator[str]:
    """Yield the contradictions between the published pooling, the options and the quirks."""
    published, loading = entry.published, entry.loading
    if published is None:
        return
    pooling = entry.options.get("pooling") if entry.run is not None else None
    published_pooling = next(
        (
            pooling_name
            for start, pooling_name in _POOLING_OPTIONS
            if published.pooling.startswith(start)
        ),
        None,
    )
    if pooling is not None and published_pooling is not None and pooling != published_pooling:
        yield f"published pooling is {published.pooling!r}, but the option pooling is {pooling!r}"
    if loading is not None and ("cls_pooling" in loading.quirks) != (published_pooling == "cls"):
        yield (
            f"quirks {_has(loading, 'cls_pooling')} cls_pooling, but the published pooling is "
            f"{published.pooling!r}"
        )


def contradictions_with_row(entry: ModelEntry, meta: Mapping[str, Any]) -> Iterator[str]:
    """Yield the contradictions between an entry and the member `meta` of its model's row."""
    params, counts = meta.get("params"), (entry.params, entry.params_in_paper)
    if params and any(counts) and params not in counts:
        entry_params = " or ".join(f"{count:,}" for count in counts if count)
        yield f"the row has {params:,} parameters, but the entry has {entry_params}"
    weights, url = entry.weights, meta.get("url") or ""
    hosts = {"huggingface": "huggingface.co/", "zenodo": "zenodo."}
    host = hosts.get(weights.kind, "") if weights is not None else ""
    if weights is not None and host and host in url and weights.location not in url:
        yield f"the row links to {url}, but the weights are at {weights.location}"


def contradictions_with_facts(entry: ModelEntry, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the contradictions between an entry and its model's object in a table of loading facts.

    docs/maintainer/models.md lists the keys that are compared. A key that is absent or null on
    either side is skipped.
    """
    for fact_name, entry_value, fact in _compared_values(entry, facts):
        if entry_value is not None and fact is not None and entry_value != fact:
            yield f"{fact_name}: the entry has {entry_value!r}, but the table has {fact!r}"
    yield from _source_contradictions(entry, facts.get("source") or {})
    loading = entry.loading
    if loading is not None:
        for quirk in sorted(set(loading.quirks) ^ set(facts.get("flags", loading.quirks))):
            owner = "the entry" if quirk in loading.quirks else "the table"
            yield f"quirks: only {owner} has {quirk}"
        known_good = {key: value for key, value in (facts.get("known_good") or {}).items() if value}
        for package, _, version in (pin.partition("==") for pin in loading.loaded_with):
            if known_good.get(package, version) != version:
                yield f"loaded_with: {package} {version}, but the table has {known_good[package]}"
    yield from _size_contradictions(entry, facts.get("params_gb_fp32"))


def _compared_values(
    entry: ModelEntry, facts: Mapping[str, Any]
) -> Iterator[tuple[str, object, object]]:
    """Yield each fact that can be compared: its name, its value in the entry and in the table."""
    loading, published = entry.loading, entry.published
    length = facts.get("max_length") or {}
    yield "embedding_dim", entry.embedding_dim, (facts.get("width") or {}).get("embedding_dim")
    yield "max_tokens", entry.max_tokens, length.get("model_tokens")
    yield "max_letters", entry.max_letters, length.get("letters")
    if published is not None:
        yield "published max_length", published.max_length, length.get("published_cap_tokens")
        yield "published pooling", published.pooling, facts.get("pooling")
        yield "published dtype", published.dtype, facts.get("dtype")
    if loading is not None:
        yield "remote_code", loading.remote_code, facts.get("remote_code")
        yield "gpu_only", loading.gpu_only, facts.get("gpu_only")
        yield "tokenizer", loading.tokenizer, (facts.get("tokenizer") or {}).get("kind")
        yield "class", loading.class_, facts.get("class")
        yield "output", loading.output, facts.get("output")
        yield "packages", loading.packages, facts.get("python_packages")


def _source_contradictions(entry: ModelEntry, table_source: Mapping[str, Any]) -> Iterator[str]:
    """Yield the contradictions about where the weights are."""
    weights = entry.weights
    if weights is None or not table_source:
        return
    if weights.kind != table_source.get("kind", weights.kind):
        yield f"kind: the entry has {weights.kind!r}, but the table has {table_source['kind']!r}"
    location = weights.location.removeprefix("doi:")
    if location not in (table_source.get("where") or location):
        yield f"location: the entry has {location!r}, but the table has {table_source['where']!r}"
    if weights.branch != table_source.get("branch"):
        branch = table_source.get("branch")
        yield f"branch: the entry has {weights.branch!r}, but the table has {branch!r}"
    entry_pins = [
        weights.revision,
        *weights.files.values(),
        entry.code.commit if entry.code else None,
    ]
    table_pin = re.search(r"[0-9a-f]{40,64}", table_source.get("revision") or "")
    if table_pin is not None and table_pin.group() not in entry_pins:
        yield f"revision: the table has {table_pin.group()}, which the entry does not pin"


def _size_contradictions(entry: ModelEntry, size_gb: float | None) -> Iterator[str]:
    """Yield a contradiction between the published number of weights and the size of the files."""
    explanation = entry.params_unknown or (entry.sources is not None and entry.sources.params)
    if size_gb is None or not entry.params or explanation:
        return
    half_unit = 10 ** -len(f"{size_gb}".partition(".")[2]) / 2
    count_min, count_max = (
        gb * _BYTES_PER_GB / _BYTES_PER_WEIGHT for gb in (size_gb - half_unit, size_gb + half_unit)
    )
    if (
        not count_min * (1 - _COUNT_DIFFERENCE_MAX)
        <= entry.params
        <= count_max * (1 + _COUNT_DIFFERENCE_MAX)
    ):
        yield (
            f"params: {entry.params:,} are published, but files of {size_gb} GB have "
            f"{size_gb * _BYTES_PER_GB / _BYTES_PER_WEIGHT:,.0f} weights; explain why in [sources] "
            "params, or declare it unexplained in params_unknown"
        )


def unknown_fact_explanations(entry: ModelEntry) -> dict[str, str]:
    """Return the facts that the entry declares unknown: by name of the fact, the explanation."""
    explanation_by_fact = {}
    if entry.run_unknown:
        candidates_text = "; ".join(candidate.what for candidate in entry.candidates)
        explanation_by_fact["run"] = f"{entry.run_unknown} To be tried: {candidates_text}."
    if entry.params_unknown:
        explanation_by_fact["params"] = entry.params_unknown
    if entry.licence in (None, UNKNOWN_LICENCE):
        sources = entry.sources
        explanation_by_fact["licence"] = (sources and sources.licence) or "nobody has looked for it"
    return explanation_by_fact
