"""Write the first files of a new model, from facts of its repository and its author.

The functions neither use the network nor run code of the repository.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from geneb_ci.common.errors import NothingChecked
from reference_harness.formats.files import read_json
from reference_harness.formats.submission_terms import DTYPES, Dtype
from reference_harness.formats.text import quoted

Pooling = Literal["mean", "cls", "last", "max"]
"""Ways to pool the states of tokens into one vector; harness and generated modules have them."""
WIDTH_KEYS = ("hidden_size", "d_model", "n_embd", "hidden_dim", "embed_dim", "dim")
"""Keys in published configurations for the width of the embeddings."""
LENGTH_KEYS = ("max_position_embeddings", "n_positions", "max_seqlen", "max_seq_len", "seq_length")
"""Keys in published configurations for the maximum number of tokens."""
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
"""Keys in published configurations for the number of layers."""
TOKENS_MAX = 10_000_000
"""Maximum number of tokens that is a real limit: transformers writes 10**30 for no limit."""
NAME_LETTERS_MAX = 100
"""Maximum letters of a name that is copied from a repository."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+/-]*")
"""A name that can be copied into files without quoting."""
TEXT_CONFIG_KEY = "text_config"
"""Key of the configuration of the text model, if a model has several parts."""
CONFIG, TOKENIZER_CONFIG, TOKENIZER = "config.json", "tokenizer_config.json", "tokenizer.json"
TOKENIZER_FILES = (TOKENIZER_CONFIG, TOKENIZER, "vocab.txt", "vocab.json", "spiece.model")
"""Files from which transformers loads a tokenizer."""
WEIGHT_FILES = (
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
"""Files of weights, each with the index of its parts, in the order in which transformers looks
for them."""


@dataclass(frozen=True)
class HubModel:
    """Facts about a model from its repository on the Hub."""

    location: str
    """Repository: OWNER/NAME."""
    revision: str
    """Commit of the repository, 40 hex digits."""
    files: Mapping[str, str]
    """SHA-256 of the weights that are loaded, and of the other files that a run needs, by name."""
    config: Mapping[str, Any]
    """Content of config.json."""
    tokenizer: Mapping[str, Any]
    """Content of tokenizer_config.json; empty without this file."""
    licence: str | None
    params: int | None
    """Number of parameters; None if it is unknown."""

    def number(self, names: tuple[str, ...]) -> int | None:
        """Return the first positive integer with one of these names in the configuration.

        Its member TEXT_CONFIG_KEY is searched, too. Return None if there is no such number.
        """
        inner = self.config.get(TEXT_CONFIG_KEY)
        configurations = (self.config, inner if isinstance(inner, dict) else {})
        numbers = (part.get(name) for part in configurations for name in names)
        return next((value for value in numbers if type(value) is int and value > 0), None)

    @property
    def width(self) -> int | None:
        """Width of the embeddings."""
        return self.number(WIDTH_KEYS)

    @property
    def max_length(self) -> int | None:
        """Number of tokens that model and tokenizer accept, including special tokens.

        None means that any number is accepted.
        """
        limits = (self.number(LENGTH_KEYS), self.tokenizer.get("model_max_length"))
        return min(
            (limit for limit in limits if type(limit) is int and 0 < limit <= TOKENS_MAX),
            default=None,
        )

    @property
    def dtype(self) -> Dtype:
        """Number format of the stored weights in the configuration, by default float32."""
        declared = self.config.get("dtype", self.config.get("torch_dtype"))
        return next((dtype for dtype in DTYPES if dtype == declared), "float32")

    @property
    def has_code(self) -> bool:
        """Whether the repository contains code with which transformers loads the model."""
        return "auto_map" in self.config or "auto_map" in self.tokenizer

    @property
    def has_decoder(self) -> bool:
        """Whether the model has a decoder, which is not needed to embed a sequence."""
        return self.config.get("is_encoder_decoder") is True

    @property
    def model_class(self) -> str:
        """Class or else type of the model that the configuration names, by default AutoModel."""
        architectures = self.config.get("architectures")
        class_name = architectures[0] if isinstance(architectures, list) and architectures else None
        return (
            name_or_none(class_name) or name_or_none(self.config.get("model_type")) or "AutoModel"
        )

    @property
    def tokenizer_class(self) -> str:
        """Class of the tokenizer that its configuration names, by default AutoTokenizer."""
        return name_or_none(self.tokenizer.get("tokenizer_class")) or "AutoTokenizer"


def name_or_none(value: object) -> str | None:
    """Return a value of a repository if it is a plain name; None for any other value."""
    is_name = (
        isinstance(value, str) and len(value) <= NAME_LETTERS_MAX and _PLAIN_NAME.fullmatch(value)
    )
    return str(value) if is_name else None


def weight_names(names: set[str], index: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the weight files that transformers loads from a repository with these files.

    `index` has the content of the index files. Raises NothingChecked if there are no weights.
    """
    for weight_file, index_name in WEIGHT_FILES:
        if weight_file in names:
            return [weight_file]
        if index_name in index:
            files = index[index_name].get("weight_map")
            return sorted({str(file) for file in files.values()} if isinstance(files, dict) else ())
    raise NothingChecked(
        f"the repository has none of {', '.join(name for pair in WEIGHT_FILES for name in pair)}",
        "run the model without these files: docs/contributor/extractor.md describes the option "
        "`weights=FILE` of the general extractor",
    )


@dataclass(frozen=True)
class AuthorFacts:
    """What the author of a submission says about the model, and names that the author chooses."""

    model_id: str
    display: str
    """Name of the model on the board."""
    pooling: Pooling
    max_length: int | None
    """Number of tokens to which an input is cut; None if it is not cut."""
    dtype: Dtype
    params: int
    licence: str | None
    training_data: str
    zero_shot: bool
    """Whether the model saw no sequence of any task in training."""
    overlap: str
    """Known overlap of the training data with the benchmark's, in words."""
    submitted_by: str
    trust_remote_code: bool = False

    @property
    def module(self) -> str:
        """Name of the module with the extractor, and of its test."""
        identifier = re.sub(r"[^A-Za-z0-9]+", "_", self.model_id).strip("_").lower()
        return identifier if identifier[:1].isalpha() else f"model_{identifier}"

    @property
    def title(self) -> str:
        """Display name without characters that would end the docstring of a module."""
        return self.display.replace("\\", "/").replace('"', "'")

    @property
    def class_name(self) -> str:
        """Name of the extractor's class in the module."""
        words = re.findall("[A-Za-z0-9]+", self.model_id)
        return "Model" + "".join(part[:1].upper() + part[1:] for part in words)

    def extractor_options(self, model: HubModel) -> dict[str, str]:
        """Return the options by which the general extractor runs the model."""
        length = "none" if self.max_length is None else str(self.max_length)
        options = {"pooling": self.pooling, "dtype": self.dtype, "max_length": length}
        if model.has_code or self.trust_remote_code:
            options["trust_remote_code"] = str(self.trust_remote_code).lower()
        return options | {"revision": model.revision}


def entry_text(model: HubModel, author_facts: AuthorFacts, extractor: str) -> str:
    """Return the text of the entry in the model registry, which the caller has to parse."""
    facts: dict[str, Any] = {
        "schema_version": "1.0",
        "name": author_facts.display,
        "params": author_facts.params,
        "embedding_dim": model.width,
        "licence": author_facts.licence,
        "max_tokens": author_facts.max_length,
    }
    options = author_facts.extractor_options(model)
    options.pop("revision")  # an audit takes the revision from the weights
    tables: dict[str, Mapping[str, Any]] = {
        "weights": {
            "kind": "huggingface",
            "location": model.location,
            "revision": model.revision,
        },
        "weights.files": dict(sorted(model.files.items())),
        "run": {
            "extractor": extractor,
            "dtype": author_facts.dtype,
            "exercised": "written by `geneb-ci new` from the configuration; not tried yet",
        },
        "run.options": options if extractor.startswith("builtin:") else {},
        "loading": {
            "class": model.model_class,
            "output": "last_hidden_state",
            "tokenizer": model.tokenizer_class,
            "remote_code": author_facts.trust_remote_code,
            "quirks": ["own_repository_code"] if author_facts.trust_remote_code else [],
        },
        "sources": {"facts": f"{CONFIG} of {model.location} at {model.revision}"},
    }
    lines = ["# How to load and run this model; docs/maintainer/models.md explains each key."]
    lines += _toml_lines(facts)
    for table_name, table in tables.items():
        if table:
            lines += ["", f"[{table_name}]", *_toml_lines(table)]
    return "".join(f"{line}\n" for line in lines)


def _toml_lines(table: Mapping[str, Any]) -> list[str]:
    """Return the lines `key = value` of a table in TOML."""

    # A basic string of TOML, and so a key, has the same escapes as JSON.
    def key(table_key: str) -> str:
        return table_key if re.fullmatch(r"[A-Za-z0-9_-]+", table_key) else json.dumps(table_key)

    return [
        f"{key(name)} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in table.items()
        if value is not None
    ]


def card_text(model: HubModel, author_facts: AuthorFacts) -> str:
    """Return the text of the model card."""
    layers, width = model.number(LAYER_KEYS), model.width
    shape_texts = [model.model_class]
    shape_texts += [f"{layers} layers"] if layers else []
    shape_texts += [f"width {width:,}"] if width else []
    length = (
        "any length"
        if author_facts.max_length is None
        else f"cut at {author_facts.max_length:,} tokens"
    )
    return f"""# {author_facts.display}

- **Display name:** {author_facts.display}
- **Parameters:** {author_facts.params:,}
- **Architecture:** {", ".join(shape_texts)}
- **Weights:** <https://huggingface.co/{model.location}> at `{model.revision}`
- **Input:** {model.tokenizer_class}, upper case, {length}
- **Pooling:** {_POOLING_IN_WORDS[author_facts.pooling]}
- **Layer:** the last hidden state, in {author_facts.dtype}
- **Licence:** {author_facts.licence or "unknown"}

## Training data

{author_facts.training_data}

## Disclosure

- **Zero-shot:** {"yes" if author_facts.zero_shot else "no"}
- **Known overlap:** {author_facts.overlap}
- **Submitted by:** {author_facts.submitted_by}
"""


_POOLING_IN_WORDS: dict[Pooling, str] = {
    "mean": "mean over all tokens but padding, special tokens included",
    "cls": "the first token",
    "last": "the last token before padding",
    "max": "maximum over all tokens but padding, special tokens included",
}
"""Words of the model card for each pooling."""
_POOLING_CODE: dict[Pooling, str] = {
    "mean": "(hidden * mask).sum(1) / mask.sum(1)",
    "cls": "hidden[:, 0]",
    "last": "hidden[torch.arange(len(hidden)), mask.sum(1).squeeze(-1) - 1]",
    "max": 'hidden.masked_fill(mask == 0, float("-inf")).amax(1)',
}
"""Code of the extractor for each pooling."""


def module_text(model: HubModel, author_facts: AuthorFacts) -> str:
    """Return the text of a module whose extractor computes the same as the built-in extractor."""
    weights = {name: digest for name, digest in model.files.items() if _is_weight(name)}
    weight_lines = "".join(
        f"            {json.dumps(name)}: {json.dumps(digest)},\n"
        for name, digest in sorted(weights.items())
    )
    options = author_facts.extractor_options(model)
    trust_option = (
        f', "trust_remote_code": {author_facts.trust_remote_code}'
        if "trust_remote_code" in options
        else ""
    )
    is_cut = author_facts.max_length is not None
    limits = f'{author_facts.max_length}, "{"right" if is_cut else "none"}"'
    code = _POOLING_CODE[author_facts.pooling]
    mask = '            mask = tokens["attention_mask"].unsqueeze(-1)\n' if "mask" in code else ""
    cut_arguments = "truncation=True, max_length=self.max_length, " if is_cut else ""
    return f'''"""{author_facts.title}: {author_facts.pooling} of the last hidden states."""

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from .base import BaseEmbeddingExtractor  # the harness provides it

REVISION = "{model.revision}"


class {author_facts.class_name}(BaseEmbeddingExtractor):
    layer, pooling, dtype = "last", "{author_facts.pooling}", "{author_facts.dtype}"
    max_length, truncation = {limits}  # in tokens, special ones included
    source = {{
        "kind": "huggingface",
        "location": {json.dumps(model.location)},
        "revision": REVISION,
        "weights": {{
{weight_lines}        }},
    }}

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        pinned = {{"revision": REVISION{trust_option}}}
        self.tokenizer = AutoTokenizer.from_pretrained(name_model, **pinned)
        self.tokenizer.padding_side = "right"
        model = AutoModel.from_pretrained(name_model, dtype=torch.{author_facts.dtype}, **pinned)
        self.model = model{".get_encoder()" if model.has_decoder else ""}.to(device).eval()

    def extract_embeddings(self, sequences, batch_size=1):
        rows = []
        for start in range(0, len(sequences), batch_size):
            batch = [one.upper() for one in sequences[start : start + batch_size]]
            tokens = self.tokenizer(batch, {cut_arguments}padding=True, return_tensors="pt")
            tokens = tokens.to(self.device)
            with torch.inference_mode():
                hidden = self.model(
                    input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
                ).last_hidden_state
{mask}            pooled = {code}
            rows.append(pooled.float().cpu().numpy())
        return np.concatenate(rows)

    def count_tokens(self, sequences):
        return [len(self.tokenizer(one.upper())["input_ids"]) for one in sequences]
'''


def _is_weight(file: str) -> bool:
    """Whether a file has weights, judged by its name."""
    return file.endswith((".safetensors", ".bin"))


def property_test_text(model: HubModel, author_facts: AuthorFacts, extractor: str) -> str:
    """Return the text of a module that tests the extractor with pytest."""
    arguments = [extractor.removeprefix("builtin:")]
    if extractor.startswith("builtin:"):
        for option, value in author_facts.extractor_options(model).items():
            arguments += ["--option", f"{option}={value}"]
    argument_lines = "".join(f"    {json.dumps(argument)},\n" for argument in arguments)
    return f'''"""The properties of {author_facts.title} that its scores depend on.

It downloads the weights, unless GENEB_MODEL names a folder that has them.
"""

import os
import subprocess
import sys

MODEL = os.environ.get("GENEB_MODEL", {json.dumps(model.location)})
CHECK = (
{argument_lines})


def test_every_property_holds():
    command = [sys.executable, "-m", "reference_harness", "extractors", "check", *CHECK]
    done = subprocess.run([*command, "--model", MODEL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
'''


def json_object(raw: bytes, file: str) -> Mapping[str, Any]:
    """Return the members of the object in a JSON file of a repository.

    Raises NothingChecked if it is not a JSON object, or nested too deeply.
    """
    try:
        content = read_json(raw)
    except ValueError as error:
        raise NothingChecked(f"{file} is not JSON: {error}", _ASK_AUTHOR) from error
    if not isinstance(content, dict):
        raise NothingChecked(f"{file} has {quoted(content)}, expected an object", _ASK_AUTHOR)
    return content


_ASK_AUTHOR = "ask the author of the model to correct the file, or write an extractor by hand"


def extractor_words(extractor: str, location: str, options: Mapping[str, str]) -> list[str]:
    """Return the arguments of a harness command for an extractor, its model and its options."""
    words = [extractor.removeprefix("builtin:"), "--model", location]
    for option, value in options.items():
        words += ["--option", f"{option}={value}"]
    return words


def run_words(
    extractor: str, location: str, options: Mapping[str, str], facts: Mapping[str, str]
) -> list[str]:
    """Return the command that evaluates a model and writes its submission.

    `facts` has at least `model_id`; words in capitals are placeholders for missing facts. DIR is
    the folder of the task data.
    """
    model_id = facts["model_id"]
    words = ["geneb-harness", "run", "--extractor", *extractor_words(extractor, location, options)]
    words += ["--data", "DIR", "--model-id", model_id, "--display", facts.get("display", model_id)]
    words += ["--params", facts.get("params", "N"), "--url", f"https://huggingface.co/{location}"]
    words += ["--zero-shot"] if facts.get("zero_shot", "").casefold().startswith("yes") else []
    words += ["--training-data", facts.get("training_data", "DATA")]
    words += ["--submitted-by", facts.get("submitted_by", "YOU")]
    return [*words, "--output", "record.json", "--submission", f"submissions/{model_id}.json"]
