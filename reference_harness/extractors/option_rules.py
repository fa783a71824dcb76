"""Options of the built-in extractor `huggingface` that exclude each other, or need another one."""

from collections.abc import Iterator, Mapping
from typing import Any

OWN_TOKENIZERS = ("characters", "kmers")
# Options that only our own tokenizers have.
_VOCABULARY_OPTIONS = ("vocabulary", "begin", "end", "unknown")
# How a file of tensors is read into a class.
_LAYOUT = ("weights_at", "rename", "split", "transpose", "zeros")


def tokenizer_rules(
    options: Any, declared: Mapping[str, Any]
) -> Iterator[tuple[bool, str]]:  # options.Options
    """Yield whether options of the tokenizer contradict each other, and how a message says it."""
    is_own_tokenizer, letters = (
        options.tokenizer in OWN_TOKENIZERS,
        options.input == "one_hot_letters",
    )
    tokenizer_option = f"tokenizer={options.tokenizer}"
    yield (
        is_own_tokenizer and not options.vocabulary,
        f"{tokenizer_option} needs vocabulary: declare it",
    )
    kmers = options.tokenizer == "kmers"
    yield kmers and options.k is None, f"{tokenizer_option} needs k: declare the letters of a word"
    for name in (*_VOCABULARY_OPTIONS, *(() if kmers else ("k", "rest"))):
        tokenizers = "kmers" if name in ("k", "rest") else " or ".join(OWN_TOKENIZERS)
        allowed = f"tokenizer={tokenizers}"
        yield (
            (not is_own_tokenizer or name in ("k", "rest")) and name in declared,
            f"{name} applies to {allowed} alone: leave it out, or declare that tokenizer",
        )
    yield (
        is_own_tokenizer and letters,
        f"input=one_hot_letters has no tokens: leave {tokenizer_option} out",
    )
    yield (
        (is_own_tokenizer or letters) and options.letters == "spaced",
        "letters=spaced is for the tokenizer of the model: leave it out",
    )
    yield letters and bool(options.prefix), "input=one_hot_letters has no prefix: leave it out"
    code = [x for x in (options.auto_class, options.tokenizer) if x.startswith("repository:")]
    yield (
        bool(code) and not options.trust_remote_code,
        f"{', '.join(code)} needs trust_remote_code=true: read that code, then declare it",
    )


def other_rules(options: Any) -> Iterator[tuple[bool, str]]:  # options.Options
    """Yield whether any other options contradict each other, and how a message says it."""
    yield (
        options.compile and options.batching == "exact",
        "compile=true and batching=exact exclude each other: the bits of compiled kernels may vary",
    )
    yield (
        options.compile and options.output.startswith("module:"),
        f"compile=true and output={options.output} exclude each other: declare one of them",
    )
    fixed = options.fixed_letters is not None
    elsewhere = options.output not in ("auto", "hidden_states")
    yield (
        options.layer != "last" and elsewhere,
        f"layer={options.layer} and output={options.output} are two places: declare one of them",
    )
    yield (
        not options.pool_special and options.pooling not in ("mean", "max"),
        f"pool_special=false is for pooling mean or max, not for {options.pooling}",
    )
    longest, padded = options.max_length, options.pad_to
    yield (
        padded is not None and not 1 <= (longest or 0) <= padded,
        f"pad_to is {padded} and max_length is {longest}: declare a max_length from 1 to {padded}",
    )
    for name in _LAYOUT:
        yield (
            bool(getattr(options, name)) and not options.weights,
            f"{name} applies to weights=FILE alone: declare the file of tensors, or leave it out",
        )
    auto = options.auto_class
    yield (
        bool(options.weights) and auto.startswith("AutoModel"),
        f"weights needs the class that its tensors are for, and auto_class is {auto}: declare it",
    )
    for name, word in (("padding", "both"), ("truncation", "middle")):
        yield (
            not fixed and getattr(options, name) == word,
            f"{name} is {word!r}, which needs fixed_letters=N: declare it, or another {name}",
        )
    yield (
        fixed and options.truncation in ("windows", "none"),
        f"truncation is {options.truncation!r}, expected middle, right or left with fixed_letters",
    )
