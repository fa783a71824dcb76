"""Options of the huggingface extractor: what is refused, before weights are read."""

import pytest

from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.extractors.options import CHOICES, Options, parse
from reference_harness.loading.constructor_arguments import converted_options, parsed_options
from tests.each import each

KMERS = {"tokenizer": "kmers", "vocabulary": "A,C", "k": 1}
CHARACTERS = {"tokenizer": "characters", "vocabulary": "A,C"}


def test_nothing_declared_is_what_every_default_says():
    assert parse({}) == Options()
    # The second is an explicit none, by which a model may be read at any length.
    assert parse({"max_length": None}) == Options(any_length=True)
    assert parse({"revision": None, "padding": None}) == Options()


def test_a_fixed_length_is_cut_and_filled_at_both_ends_unless_declared():
    fixed = parse({"fixed_letters": 8})
    assert (fixed.padding, fixed.truncation) == ("both", "middle")
    own = parse({"fixed_letters": 8, "padding": "right", "truncation": "left"})
    assert (own.padding, own.truncation) == ("right", "left")


def test_the_words_of_a_command_line_become_options():
    words = [
        "layer=-2", "truncation=none", "mask_inside=false", "prefix=true", "max_length=none",
        "special_tokens=false", 'model_arguments={"a": [1]}', "revision=12", "stride=3",
    ]  # fmt: skip
    assert parse(converted_options(parsed_options(words, "--option"))) == Options(
        layer="-2",
        truncation="none",
        mask_inside="false",
        prefix="true",
        any_length=True,
        special_tokens=False,
        model_arguments={"a": [1]},
        revision="12",
        stride=3,
    )


@each(
    ("options", "message"),
    [
        ({"poling": "mean"}, "no option 'poling' of the extractor huggingface; did you mean pooli"),
        ({"xyz": 1}, "no option 'xyz' of the extractor huggingface; expected auto_class, batchin"),
        ({"input": "onehot"}, "input is 'onehot', expected one of ids, one_hot_letters, one_hot_"),
        ({"special_tokens": "no"}, "special_tokens is 'no', expected true or false"),
        ({"k": 0, **CHARACTERS}, "k is 0, expected a whole number from 1"),
        ({"max_length": True}, "max_length is True, expected a whole number from 1"),
        ({"model_arguments": "{"}, "model_arguments is '{', expected a JSON object such as"),
        ({"model_arguments": "[1]"}, r"model_arguments is \[1\], expected a JSON object such as"),
        ({"missing": "("}, r"missing is '\(', expected a regular expression"),
        ({"output": "item:x"}, "output is 'item:x', expected one of auto, last_hidden_state, hi"),
        ({"layer": "top"}, "layer is 'top', expected last or the number of a layer"),
        ({"layer": 1, "output": "item:0"}, "layer=1 and output=item:0 exclude each other"),
        ({"tokenizer": "kmers", "k": 3}, "tokenizer=kmers needs the option vocabulary: declare"),
        (
            {"tokenizer": "kmers", "vocabulary": "A,C"},
            "tokenizer=kmers needs k, the letters of a word",
        ),
        ({"k": 3}, "k applies only to tokenizer=kmers: leave k out, or declare that tokenizer"),
        ({"begin": "A"}, "begin applies only to tokenizer=characters or kmers: leave begin out"),
        ({**CHARACTERS, "input": "one_hot_letters"}, "has no tokens: leave tokenizer=characters"),
        ({**KMERS, "letters": "spaced"}, "letters=spaced needs the model's own tokenizer"),
        ({"input": "one_hot_letters", "prefix": "A"}, "input=one_hot_letters has no prefix"),
        ({"pool_special": False, "pooling": "cls"}, "needs pooling mean or max, not cls"),
        ({"padding": "both"}, "padding is 'both', which needs fixed_letters=N"),
        ({"truncation": "middle"}, "truncation is 'middle', which needs fixed_letters=N"),
        ({"fixed_letters": 8, "truncation": "none"}, "truncation is 'none', expected middle, rig"),
        ({"auto_class": "repository:code.Model"}, "repository:code.Model needs trust_remote_code"),
        ({"zeros": "bias"}, "zeros applies only to weights=FILE: declare the file of tensors, or"),
        ({"weights": "a.pth"}, "weights needs the class of its tensors, but auto_class"),
        ({"rename": {"a": 1}}, r"rename is \{'a': 1\}, expected a JSON object of regular expressi"),
        (
            {"rename": '{"(": ""}'},
            "rename is .*, expected a JSON object of regular expression to t",
        ),
        ({"rename": {"a": r"\1"}}, "expected a JSON object of regular expression to text .invalid"),
        ({"split": {"a": ["b"]}}, "expected a JSON object of regular expression to two or more te"),
        ({"pad_to": 8}, "pad_to is 8, and max_length is None, expected max_length from 1 to 8"),
        (
            {"pad_to": 8, "max_length": 9},
            "pad_to is 8, and max_length is 9, expected max_length from 1 to 8",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(options, message):
    with pytest.raises(ExtractorError, match=message):
        parse(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"auto_class": "AutoModelForCasualLM"}, "expected AutoModelForCausalLM, transformers:CLA"),
        ({"auto_class": "transformers:LlamaModle"}, "no such class to load; did you mean LlamaMod"),
        ({"auto_class": "transformers:nothing at all"}, "transformers has no such class to load$"),
        (
            {"auto_class": "repository:Model"},
            "auto_class is 'repository:Model', expected AutoModel",
        ),
        ({"tokenizer": "letters"}, "tokenizer is 'letters', expected "),
        (
            {"auto_class": "own:bert"},
            "auto_class is 'own:bert', expected own: and one of gated_bert, j",
        ),
        (
            {"auto_class": "package:no_such_package.Model"},
            "no package no_such_package is installed here: install it, or run in the environment",
        ),
    ],
)
def test_a_class_that_does_not_exist_is_refused_before_anything_is_read(options, message):
    with pytest.raises(ExtractorError, match=message):
        HuggingFaceExtractor("no folder at all", **options, trust_remote_code=True)


@each("name", sorted(CHOICES))
def test_a_word_that_is_not_listed_is_refused_with_those_that_are(name):
    with pytest.raises(ExtractorError) as refused:
        parse({name: "Mean "})
    assert all(word in str(refused.value) for word in CHOICES[name])
