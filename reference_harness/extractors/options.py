"""Parse and check the options of the built-in extractor `huggingface`."""

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reference_harness.embedding import batching as batches

from .base import ExtractorError, UnknownOptionError
from .option_rules import other_rules, tokenizer_rules

DTYPES = ("float32", "bfloat16", "float16", "float64")
"""Values of the option `dtype`: types in which a model may compute."""
BATCHINGS = ("budget", "exact", "file")
"""Values of the option `batching`."""

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
"""Allowed values by option."""
_FLAGS = ("trust_remote_code", "special_tokens", "pool_special", "compile")
"""Options that are true or false."""
_MINIMUMS = {
    "max_length": 1,
    "stride": 0,
    "token_budget": 1,
    "k": 1,
    "multiple_of": 1,
    "fixed_letters": 1,
    "pad_to": 1,
}
"""Smallest value of each option that is an integer."""
_JSON_OPTIONS = ("model_arguments", "tokenizer_arguments", "config_arguments", "rename", "split")
"""Options that are JSON objects."""
_REGULAR_EXPRESSION_OPTIONS = ("missing", "unexpected", "transpose", "zeros", "keep_float32")
"""Options that are regular expressions."""
_TEXT_FORMS = {  # option: (regular expression of its texts, expectation for a message)
    "output": (
        r"auto|last_hidden_state|hidden_states|item:\d+|module:\S+",
        "one of auto, last_hidden_state, hidden_states, item:N, module:NAME",
    ),
    "layer": (r"last|-?\d+", "last or the number of a layer"),
}
_REPLACEMENTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
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
"""Option -> (expected value, for a message; function that checks one replacement)."""
_JSON_OBJECT = 'a JSON object such as {"name": 1}'
"""Expected value of each option of `_JSON_OPTIONS`, in the words of a message."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The declared options of a model and its tokenizer; `parse` checks each value."""

    # Which output is read.
    layer: str = "last"
    """"last" or an index into the hidden states, 0 being the embeddings, -1 the last."""
    output: str = "auto"
    """Part of the output of forward that has the hidden states.

    `last_hidden_state`, `hidden_states`, `item:N` of a tuple, or `module:NAME`, the output of that
    submodule; `auto` is `last_hidden_state`, else `hidden_states`.
    """
    pooling: str = "mean"
    """`mean`, `max`, `cls` (the first token), `last`, or `penultimate` (see below).

    The penultimate token is the last one before those that the tokenizer adds at the end.
    """
    pool_special: bool = True
    """Whether special tokens and the prefix count in the mean or maximum."""
    scale: str = "none"
    """`unit` divides each embedding by the root mean square of its values, else `none`.

    The probe's penalty, and so every score, depends on the scale.
    """
    # How sequences become tokens.
    tokenizer: str = "auto"
    """`auto`, `characters`, `kmers`, `transformers:CLASS` or `repository:FILE.CLASS`."""
    vocabulary: str = ""
    """Entries in order of id, separated by commas, or a file of the model's folder.

    `NAME=ID` is an entry with another id; `NAGCT^6` is all words of six of these letters,
    `NAGCT^1-6` all words of one to six.
    """
    k: int | None = None
    """Letters per word of `tokenizer=kmers`."""
    rest: str = "unknown"
    """The tokens of letters that form no word of `kmers`.

    `unknown`: one unknown token; `letters`: single letters; `shorter`: shorter words; `end`:
    shorter words at the end only; `drop`: no token.
    """
    begin: str = ""
    """Entries that `characters` and `kmers` put before each sequence, separated by commas."""
    end: str = ""
    """Entries that `characters` and `kmers` put after each sequence, separated by commas."""
    unknown: str = ""
    """Entry for letters that are not in the vocabulary; "" refuses such letters."""
    special_tokens: bool = True
    """Whether the tokenizer adds its special tokens."""
    tokenizer_arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of further arguments of each call of the tokenizer."""
    case: str = "upper"
    """`upper` reads lower case as upper case; `sensitive` leaves letters as they are."""
    prefix: str = ""
    """Text before each sequence; `{bos_token}` is replaced by that token of the tokenizer."""
    letters: str = "joined"
    """`spaced` puts a space between letters."""
    multiple_of: int = 1
    """Letters are cut off at the right until their number is a multiple of this."""
    fixed_letters: int | None = None
    """Each sequence is cut or filled with N to this many letters."""
    # How long sequences are truncated, and how windows are combined.
    max_length: int | None = None
    """Maximum number of tokens of a sequence or window, with special ones; None: the model's."""
    any_length: bool = False
    """Whether `max_length=none` was declared, so that no limit has to be known."""
    truncation: str = "right"
    """Treatment of a sequence that is too long.

    `right`, `left`: this end is cut off; `windows`: windows are averaged; `none`: it is an error;
    `middle`, only with `fixed_letters`: both ends are cut off.
    """
    stride: int = 0
    """Tokens that a window shares with the one before it."""
    window_weights: str = "tokens"
    """`tokens` weights windows by their tokens in the average, `equal` does not."""
    last_window: str = "short"
    """`short` ends where the sequence ends; `full` is moved back until it is full."""
    # The input of forward.
    input: str = "ids"
    """`ids`, or floats: `one_hot_letters` or `one_hot_tokens`.

    `one_hot_letters` is (b, letters, 4) in the order A, C, G, T with zeros for all other letters,
    `one_hot_tokens` is (b, tokens, entries) with zeros for padding.
    """
    mask_inside: str = "auto"
    """Whether the attention mask makes padding have no effect; `auto` measures it."""
    padding: str = "right"
    """End at which shorter sequences are padded; with `fixed_letters`, the end filled with N."""
    pad_to: int | None = None
    """Number of tokens to which all pieces are padded, for models whose embeddings depend on it.

    `max_length` must not be larger.
    """
    model_arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of further arguments of forward."""
    # What is loaded and how.
    auto_class: str = "AutoModel"
    """An Auto class of transformers, `transformers:CLASS`, `repository:FILE.CLASS`,
    `package:MODULE.CLASS` of an installed package, or `own:NAME` of the harness."""
    submodule: str = ""
    """Dotted name of the submodule that is run instead of the whole model."""
    config_arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of values that replace those of the model's configuration."""
    weights: str = ""
    """File of tensors, which the next five options map to the class.

    If it is "", the class loads its own weights.
    """
    weights_at: str = ""
    """Key under which the file of `weights` has the tensors; "" for its top level."""
    rename: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of regular expression to replacement, applied to names one after the other."""
    split: Mapping[str, Any] = field(default_factory=dict)
    """JSON object of regular expression to a list of replacements.

    The tensor is divided along its first dimension into as many parts.
    """
    transpose: str = ""
    """Regular expression of names of the model's weights that the file has transposed."""
    zeros: str = ""
    """Regular expression of names of the model's weights that are 0 if the file has none."""
    keep_float32: str = ""
    """Regular expression of names of weights that stay float32 whatever `dtype` is."""
    missing: str = ""
    """Regular expression of names of weights that may be missing from the file."""
    unexpected: str = ""
    """Regular expression of names of weights in the file that the model need not have."""
    dtype: str = "float32"
    """Type in which the model computes."""
    revision: str | None = None
    """Commit of the repository on the Hub; None for a local folder."""
    trust_remote_code: bool | None = None
    """Whether the checkpoint's own code is run; `false` declares that the library's class is meant.

    If it is None, a checkpoint whose own code would be ignored is refused.
    """
    batching: str = "budget"
    """How sequences are grouped into batches, as in `geneb-harness run --batching`."""
    token_budget: int = batches.DEFAULT_TOKEN_BUDGET
    """Maximum number of padded tokens of a batch."""
    compile: bool = False
    """Whether torch.compile compiles the model; an audit runs it uncompiled."""


def parse(declared: Mapping[str, Any]) -> Options:
    """Return checked options. The value of an option for a JSON object may be its text.

    Raise UnknownOptionError for an unknown option, ExtractorError for an invalid value and for
    options that exclude each other.
    """
    known = [field.name for field in dataclasses.fields(Options) if field.name != "any_length"]
    for option in declared:
        if option not in known:
            similar_names = difflib.get_close_matches(option, known, n=1)
            hint = (
                f"did you mean {similar_names[0]}?"
                if similar_names
                else f"expected {', '.join(sorted(known))}"
            )
            msg = f"no option {option!r} of the extractor huggingface; {hint}"
            raise UnknownOptionError(msg)
    parsed: dict[str, Any] = {name: _checked_value(name, value) for name, value in declared.items()}
    if parsed.get("fixed_letters") is not None:
        parsed = {"padding": "both", "truncation": "middle", **parsed}
    # An option with the value None keeps its default, as on the command line.
    parsed = {name: value for name, value in parsed.items() if value is not None}
    options = Options(
        **parsed, any_length="max_length" in declared and parsed.get("max_length") is None
    )
    _check_together(options, declared)
    return options


def _checked_value(option: str, value: Any) -> Any:  # each option has a type of its own
    """Return the checked value of one option. Raise ExtractorError if it is invalid."""
    if option in CHOICES:
        return _checked_choice(option, value)
    if option in _FLAGS:
        if not isinstance(value, bool):
            raise _invalid_value(option, value, "true or false")
        return value
    if option in _MINIMUMS:
        return _checked_number(option, value)
    if option in _JSON_OPTIONS:
        return _json_object(option, value)
    return _checked_text(option, value)


def _checked_choice(option: str, value: object) -> str | None:
    """Return the value of an option with a list of allowed values."""
    if value is None and option == "padding":
        return None
    choice = str(value).lower() if isinstance(value, bool) else value
    # The command line parses `none` as None.
    choice = "none" if choice is None and "none" in CHOICES[option] else choice
    if not isinstance(choice, str) or choice not in CHOICES[option]:
        raise _invalid_value(option, value, f"one of {', '.join(CHOICES[option])}")
    return choice


def _checked_text(option: str, value: object) -> str | None:
    """Return the text of an option, also if the command line parsed it as number or truth value.

    Raise ExtractorError if the option needs a regular expression or another form of text, and this
    is none.
    """
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if option in _REGULAR_EXPRESSION_OPTIONS:
        try:
            re.compile(text)
        except re.error as error:
            raise _invalid_value(option, value, f"a regular expression ({error})") from None
    form = _TEXT_FORMS.get(option)
    if form is not None and not re.fullmatch(form[0], text):
        raise _invalid_value(option, value, form[1])
    return text


def _checked_number(option: str, value: object) -> int | None:
    """Return the value of an integer option, which may be None."""
    if value in (None, "none") and option in ("max_length", "k", "fixed_letters", "pad_to"):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < _MINIMUMS[option]:
        raise _invalid_value(option, value, f"a whole number from {_MINIMUMS[option]}")
    return value


def _json_object(option: str, value: object) -> Mapping[str, Any]:
    """Return the value of a JSON option, parsed if it is text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise _invalid_value(option, value, _JSON_OBJECT) from None
    if not isinstance(value, Mapping):
        raise _invalid_value(option, value, _JSON_OBJECT)
    if option in _REPLACEMENTS:
        _check_rules(option, value)
    return dict(value)


def _check_rules(option: str, rules: Mapping[str, Any]) -> None:
    """Raise ExtractorError unless `rules` maps regular expressions to valid replacements."""
    expected_text, is_valid = _REPLACEMENTS[option]
    for pattern, replacement in rules.items():
        if not is_valid(replacement):
            raise _invalid_value(option, dict(rules), expected_text)
        try:
            for template in [replacement] if isinstance(replacement, str) else replacement:
                # The empty match makes `re` check the references to groups.
                re.sub(f"{pattern}|", template, "")
        except (re.error, IndexError) as error:
            raise _invalid_value(option, dict(rules), f"{expected_text} ({error})") from None


def _invalid_value(option: str, value: object, expected: str) -> ExtractorError:
    """Return the error for a value of an option that is not as expected."""
    return ExtractorError(f"{option} is {value!r}, expected {expected}")


def _check_together(options: Options, declared: Mapping[str, Any]) -> None:
    """Raise ExtractorError for options that exclude each other, or need a missing option."""
    for is_broken, message in (*tokenizer_rules(options, declared), *other_rules(options)):
        if is_broken:
            raise ExtractorError(message)
