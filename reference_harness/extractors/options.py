"""Options of the built-in extractor `huggingface`: read, checked and named in every refusal."""

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reference_harness import batching as batches

from .base import ExtractorError, UnknownOptionError
from .option_rules import other_rules, tokenizer_rules

DTYPES = ("float32", "bfloat16", "float16", "float64")
BATCHINGS = ("budget", "exact", "file")

CHOICES = {
    "pooling": ("mean", "cls", "last", "max", "penultimate"),
    "truncation": ("right", "left", "windows", "none", "middle"),
    "window_weights": ("tokens", "equal"),
    "last_window": ("short", "full"),
    "dtype": DTYPES,
    "batching": BATCHINGS,
    "padding": ("right", "left", "both"),
    "case": ("upper", "sensitive"),
    "letters": ("joined", "spaced"),
    "scale": ("none", "unit"),
    "rest": ("unknown", "letters", "shorter", "end", "drop"),
    "input": ("ids", "one_hot_letters", "one_hot_tokens"),
    "mask_inside": ("auto", "true", "false"),
}
"""The words that an option may have."""
_FLAGS = ("trust_remote_code", "special_tokens", "pool_special", "compile")
_LEAST = {
    "max_length": 1,
    "stride": 0,
    "token_budget": 1,
    "k": 1,
    "multiple_of": 1,
    "fixed_letters": 1,
    "pad_to": 1,
}
_OBJECTS = ("model_arguments", "tokenizer_arguments", "config_arguments", "rename", "split")
_PATTERNS = ("missing", "unexpected", "transpose", "zeros", "keep_float32")
_FORMS = {
    "output": (
        r"auto|last_hidden_state|hidden_states|item:\d+|module:\S+",
        "one of auto, last_hidden_state, hidden_states, item:N, module:NAME",
    ),
    "layer": (r"last|-?\d+", "last or the number of a layer"),
}
_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "rename": (
        "a JSON object of regular expression to text",
        lambda value: isinstance(value, str),
    ),
    "split": (
        "a JSON object of regular expression to two or more texts",
        lambda value: (
            isinstance(value, list) and len(value) > 1 and all(isinstance(x, str) for x in value)
        ),
    ),
}
_JSON = 'a JSON object such as {"name": 1}'


@dataclass(frozen=True, kw_only=True)
class Options:
    """The declared options of a model and its tokenizer; `parse` checks each value."""

    # What is read of the output.
    layer: str = "last"
    """"last" or an index into the hidden states, 0 being the embeddings, -1 the last."""
    output: str = "auto"
    """Which part of what forward gives: `last_hidden_state`, `hidden_states`, `item:N` of a tuple,
    `module:NAME`, the output of that submodule; `auto` takes the first two where they exist."""
    pooling: str = "mean"
    """`mean`, `max`, `cls` (the first token), `last`, or `penultimate`, the last token before those
    that the tokenizer adds at the end."""
    pool_special: bool = True
    """Whether special tokens and the prefix count in the mean or maximum."""
    scale: str = "none"
    """`unit`: each embedding is divided by the root mean square of its values; the probe's penalty,
    and so every score, depends on the scale."""
    # How sequences become tokens.
    tokenizer: str = "auto"
    """`auto`, `characters`, `kmers`, `transformers:CLASS` or `repository:FILE.CLASS`."""
    vocabulary: str = ""
    """Entries in order of id, separated by commas, or a file of the model's folder. `NAME=ID` is an
    entry with another id; `NAGCT^6` and `NAGCT^1-6` are all words of so many of these letters."""
    k: int | None = None
    """Letters of a word of `tokenizer=kmers`."""
    rest: str = "unknown"
    """The tokens of letters that are no word of `kmers`: one unknown token, single letters,
    shorter words (`end`: only of the letters that are left at the end), or nothing."""
    begin: str = ""
    """Entries that `characters` and `kmers` put before each sequence, separated by commas."""
    end: str = ""
    """The same after each sequence."""
    unknown: str = ""
    """Entry for letters that are not in the vocabulary; empty: they are refused."""
    special_tokens: bool = True
    """Whether the tokenizer adds what it adds by itself."""
    tokenizer_arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of further arguments of each call of the tokenizer."""
    case: str = "upper"
    """`upper` reads lower case as upper case; `sensitive` leaves letters as they are."""
    prefix: str = ""
    """Text before each sequence; `{bos_token}` is what the tokenizer calls so."""
    letters: str = "joined"
    """`spaced` puts a space between letters."""
    multiple_of: int = 1
    """Letters are cut from the right to a multiple of it."""
    fixed_letters: int | None = None
    """Each sequence is cut or filled with N to this many letters."""
    # What is cut, and how windows are combined.
    max_length: int | None = None
    any_length: bool = False
    """Whether `max_length=none` was declared: then no limit has to be known."""
    truncation: str = "right"
    """Which end is cut, `windows`, or `none`: too long is then an error; `middle`, with
    `fixed_letters`, cuts both ends."""
    stride: int = 0
    """Tokens that a window shares with the one before it."""
    window_weights: str = "tokens"
    """Whether windows are averaged by their tokens or weigh the same."""
    last_window: str = "short"
    """`short` ends where the sequence ends; `full` is moved back until it is full."""
    # What forward is given.
    input: str = "ids"
    """`ids`, or floats: `one_hot_letters` (b, letters, 4) in the order A, C, G, T, all others
    zero, and `one_hot_tokens` (b, tokens, entries), padding zero."""
    mask_inside: str = "auto"
    """Whether padded positions change nothing inside the model; `auto` measures it."""
    padding: str = "right"
    """Where padding stands in a batch; with `fixed_letters`, where N fills a short sequence."""
    pad_to: int | None = None
    """Tokens that every piece is padded to, for a model that padding changes and whose published
    run padded so; `max_length` is then at most as many."""
    model_arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of further arguments of forward."""
    # What is loaded.
    auto_class: str = "AutoModel"
    """An Auto class of transformers, `transformers:CLASS`, `repository:FILE.CLASS`,
    `package:MODULE.CLASS` of an installed package, or `own:NAME` of the harness."""
    submodule: str = ""
    """Dotted attribute of the loaded model that is run in its place."""
    config_arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of values that replace those of the model's configuration."""
    weights: str = ""
    """File of tensors that is read into that class by the five options below; empty: the class
    loads its own."""
    weights_at: str = ""
    """Entry of that file that holds the tensors, if it has one of that name."""
    rename: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of regular expression to replacement, applied to names one after the other."""
    split: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of regular expression to a list of replacements: the tensor is cut into as many
    parts along its first dimension."""
    transpose: str = ""
    """Regular expression of the model's names whose two dimensions the file has swapped."""
    zeros: str = ""
    """Regular expression of the model's names that are zero where the file lacks them."""
    keep_float32: str = ""
    """Regular expression of weights that stay float32 whatever `dtype` is."""
    missing: str = ""
    """Regular expression of weights that may be missing from the file."""
    unexpected: str = ""
    """Regular expression of weights of the file that the model may lack."""
    dtype: str = "float32"
    revision: str | None = None
    trust_remote_code: bool | None = None
    """Whether the checkpoint's own code is run; `false` states that the library's class is meant.
    Left out, a checkpoint whose own code would then be ignored is refused."""
    batching: str = "budget"
    token_budget: int = batches.TOKEN_BUDGET
    compile: bool = False
    """Whether torch.compile compiles the model; an audit runs it as it is."""


def parse(declared: Mapping[str, Any]) -> Options:
    """Return checked options; numbers, truth values and JSON may come as text or as values.

    Raises ExtractorError for an unknown option, a value that an option cannot have, and options
    that exclude each other.
    """
    names = [field.name for field in dataclasses.fields(Options) if field.name != "any_length"]
    for name in declared:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"they are: {', '.join(sorted(names))}"
            msg = f"no option {name!r} of the extractor huggingface; {hint}"
            raise UnknownOptionError(msg)
    values: dict[str, Any] = {name: _value(name, value) for name, value in declared.items()}
    if values.get("fixed_letters") is not None:
        values = {"padding": "both", "truncation": "middle", **values}
    # A text that is left empty has its default, as on the command line.
    values = {name: value for name, value in values.items() if value is not None}
    options = Options(
        **values, any_length="max_length" in declared and values.get("max_length") is None
    )
    _check_together(options, declared)
    return options


def _value(name: str, value: Any) -> Any:  # each option has a type of its own
    """Return the value of one option, or raise for one that it cannot have."""
    if name in CHOICES:
        return _choice(name, value)
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise _refused(name, value, "true or false")
        return value
    if name in _LEAST:
        return _number(name, value)
    if name in _OBJECTS:
        return _object(name, value)
    return _text(name, value)


def _choice(name: str, value: object) -> str | None:
    if value is None and name == "padding":
        return None
    text = str(value).lower() if isinstance(value, bool) else value
    # The command line reads `none` as no value.
    text = "none" if text is None and "none" in CHOICES[name] else text
    if not isinstance(text, str) or text not in CHOICES[name]:
        raise _refused(name, value, f"one of {', '.join(CHOICES[name])}")
    return text


def _text(name: str, value: object) -> str | None:
    """Return a text as it was typed: the command line reads `true`, `none` and digits as values."""
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if name in _PATTERNS:
        try:
            re.compile(text)
        except re.error as error:
            raise _refused(name, value, f"a regular expression ({error})") from None
    form = _FORMS.get(name)
    if form is not None and not re.fullmatch(form[0], text):
        raise _refused(name, value, form[1])
    return text


def _number(name: str, value: object) -> int | None:
    if value in (None, "none") and name in ("max_length", "k", "fixed_letters", "pad_to"):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < _LEAST[name]:
        raise _refused(name, value, f"a whole number from {_LEAST[name]}")
    return value


def _object(name: str, value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise _refused(name, value, _JSON) from None
    if not isinstance(value, Mapping):
        raise _refused(name, value, _JSON)
    if name in _RULES:
        _check_rules(name, value)
    return dict(value)


def _check_rules(name: str, rules: Mapping[str, Any]) -> None:
    """Raise unless each rule is a regular expression and what replaces its matches."""
    text, valid = _RULES[name]
    for pattern, replacement in rules.items():
        if not valid(replacement):
            raise _refused(name, dict(rules), text)
        try:
            for template in [replacement] if isinstance(replacement, str) else replacement:
                # The empty match makes `re` read the references to groups.
                re.sub(f"{pattern}|", template, "")
        except (re.error, IndexError) as error:
            raise _refused(name, dict(rules), f"{text} ({error})") from None


def _refused(name: str, value: object, expected: str) -> ExtractorError:
    return ExtractorError(f"{name} is {value!r}, expected {expected}")


def _check_together(options: Options, declared: Mapping[str, Any]) -> None:
    """Raise for options that exclude each other, or that need another one."""
    for wrong, message in (*tokenizer_rules(options, declared), *other_rules(options)):
        if wrong:
            raise ExtractorError(message)
