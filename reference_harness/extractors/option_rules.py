"""Rules about options of the built-in extractor `huggingface` that contradict each other."""

from collections.abc import Iterator, Mapping
from typing import Any

OWN_TOKENIZERS = ("characters", "kmers")
"""Values of the option `tokenizer` that select a tokenizer of the harness."""
_OWN_TOKENIZER_OPTIONS = ("vocabulary", "begin", "end", "unknown")
"""Options that only the tokenizers of the harness have."""
_TENSOR_OPTIONS = ("weights_at", "rename", "split", "transpose", "zeros")
"""Options that map a file of tensors to the weights of a class."""


def tokenizer_rules(
    options: Any, declared: Mapping[str, Any]
) -> Iterator[tuple[bool, str]]:  # options.Options
    """Yield (whether it is broken, its message) of each rule about options of the tokenizer."""
    is_own_tokenizer, is_one_hot_letters = (
        options.tokenizer in OWN_TOKENIZERS,
        options.input == "one_hot_letters",
    )
    tokenizer_option = f"tokenizer={options.tokenizer}"
    yield (
        is_own_tokenizer and not options.vocabulary,
        f"{tokenizer_option} needs the option vocabulary: declare vocabulary=ENTRIES",
    )
    is_kmers = options.tokenizer == "kmers"
    yield (
        is_kmers and options.k is None,
        f"{tokenizer_option} needs k, the letters of a word: declare k=N",
    )
    for option in (*_OWN_TOKENIZER_OPTIONS, *(() if is_kmers else ("k", "rest"))):
        tokenizers = "kmers" if option in ("k", "rest") else " or ".join(OWN_TOKENIZERS)
        allowed = f"tokenizer={tokenizers}"
        yield (
            (not is_own_tokenizer or option in ("k", "rest")) and option in declared,
            f"{option} applies only to {allowed}: leave {option} out, or declare that tokenizer",
        )
    yield (
        is_own_tokenizer and is_one_hot_letters,
        f"input=one_hot_letters has no tokens: leave {tokenizer_option} out",
    )
    yield (
        (is_own_tokenizer or is_one_hot_letters) and options.letters == "spaced",
        "letters=spaced needs the model's own tokenizer: leave letters out",
    )
    yield (
        is_one_hot_letters and bool(options.prefix),
        "input=one_hot_letters has no prefix: leave prefix out",
    )
    repository_options = [
        class_option
        for class_option in (options.auto_class, options.tokenizer)
        if class_option.startswith("repository:")
    ]
    yield (
        bool(repository_options) and not options.trust_remote_code,
        (
            f"{', '.join(repository_options)} needs trust_remote_code=true: read the code, then "
            "declare that option"
        ),
    )


def other_rules(options: Any) -> Iterator[tuple[bool, str]]:  # options.Options
    """Yield (whether it is broken, its message) of each rule about other options."""
    yield (
        options.compile and options.batching == "exact",
        (
            "compile=true and batching=exact exclude each other, as the bits of compiled kernels "
            "may vary: leave one of them out"
        ),
    )
    yield (
        options.compile and options.output.startswith("module:"),
        f"compile=true and output={options.output} exclude each other: leave one of them out",
    )
    has_fixed_letters = options.fixed_letters is not None
    has_other_output = options.output not in ("auto", "hidden_states")
    yield (
        options.layer != "last" and has_other_output,
        (
            f"layer={options.layer} and output={options.output} exclude each other: leave one of "
            "them out"
        ),
    )
    yield (
        not options.pool_special and options.pooling not in ("mean", "max"),
        (
            f"pool_special=false needs pooling mean or max, not {options.pooling}: leave "
            "pool_special out"
        ),
    )
    max_length, pad_to = options.max_length, options.pad_to
    yield (
        pad_to is not None and not 1 <= (max_length or 0) <= pad_to,
        (
            f"pad_to is {pad_to}, and max_length is {max_length}, expected max_length from 1 to "
            f"{pad_to}: declare another max_length or pad_to"
        ),
    )
    for option in _TENSOR_OPTIONS:
        yield (
            bool(getattr(options, option)) and not options.weights,
            (
                f"{option} applies only to weights=FILE: declare the file of tensors, or leave "
                f"{option} out"
            ),
        )
    auto_class = options.auto_class
    yield (
        bool(options.weights) and auto_class.startswith("AutoModel"),
        (
            f"weights needs the class of its tensors, but auto_class is {auto_class}: declare "
            "the class, such as auto_class=transformers:CLASS"
        ),
    )
    for option, choice in (("padding", "both"), ("truncation", "middle")):
        yield (
            not has_fixed_letters and getattr(options, option) == choice,
            (
                f"{option} is {choice!r}, which needs fixed_letters=N: declare fixed_letters, or "
                f"another {option}"
            ),
        )
    yield (
        has_fixed_letters and options.truncation in ("windows", "none"),
        (
            f"truncation is {options.truncation!r}, expected middle, right or left with "
            "fixed_letters: declare one of them"
        ),
    )
