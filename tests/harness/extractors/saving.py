"""Writes small models as a contributor's folder would be, and runs one sequence by hand."""

import json
import shutil
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split, WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from tests.harness.extractors.remote import stubs as code

stubs: Any = code
STUBS = Path(stubs.__file__)
LIMIT = 40
BEGIN, END, UNKNOWN = "<cls>", "<eos>", "<unk>"
SPECIAL = ("<pad>", "<cls>", "<eos>", "<unk>", "<mask>")
WORDS = (*SPECIAL, *"ACGTN")
KMERS = (*SPECIAL, "<R>", *map("".join, product("ACGT", repeat=3)))
Row = Callable[[Any, str], np.ndarray]


def ids(text: str, words: tuple[str, ...] = WORDS, k: int = 1) -> list[int]:
    """Number the words of k letters; what is none is unknown."""
    cut = [text[i : i + k] for i in range(0, len(text), k)]
    return [words.index(word if word in words else "<unk>") for word in cut]


def mean_of(states: Callable[[Any, Tensor], Tensor], encode: Callable[[str], list[int]]) -> Row:
    """Average the states (1, t, d) of a sequence that is run alone."""

    def row(model: Any, sequence: str) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(states(model, torch.tensor([encode(sequence)]))[0].mean(dim=0))

    return row


def last_state(model: Any, tokens: Tensor) -> Tensor:
    """Return the last of all hidden states."""
    tensor: Tensor = model(tokens, output_hidden_states=True).hidden_states[-1]
    return tensor


def framed(sequence: str) -> list[int]:
    return [1, *ids(sequence), 2]


def begun(sequence: str) -> list[int]:
    return [1, *ids(sequence)]


def tokenizer(
    *,
    words: tuple[str, ...] = WORDS,
    template: str = "<cls> $A <eos>",
    spaced: bool = False,
    limit: int | None = None,
    side: str = "right",
    pad: str | None = "<pad>",
) -> PreTrainedTokenizerFast:
    """Return a fast tokenizer of letters; `limit` None is the sentinel of transformers."""
    inner = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token=UNKNOWN))
    inner.pre_tokenizer = WhitespaceSplit() if spaced else Split(Regex("."), "isolated")
    used = [(word, words.index(word)) for word in template.split() if word != "$A"]
    inner.post_processor = TemplateProcessing(single=template, special_tokens=used)
    extra = {} if limit is None else {"model_max_length": limit}
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token=UNKNOWN,
        eos_token=END,
        padding_side=side,
        **({} if pad is None else {"pad_token": pad}),
        **extra,
    )


def plain(cls: Any, config: Any, **of_tokenizer: Any) -> Callable[[Path], Any]:
    """Save a class of transformers with a fast tokenizer."""

    def save(folder: Path) -> Any:
        model = seeded(cls, config)
        model.save_pretrained(folder)
        tokenizer(**of_tokenizer).save_pretrained(folder)
        return model

    return save


def seeded(cls: Any, config: Any) -> Any:
    """Build a model in evaluation mode, the same for the same class."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        return cls(config).eval()


def remote(
    cls: type,
    *,
    auto: str = "AutoModel",
    slow: Mapping[str, Any] | None = None,
    of_tokenizer: Mapping[str, Any] | None = None,
    **config: Any,
) -> Callable[[Path], Any]:
    """Save a stub beside its code, with a fast tokenizer or the slow one of the stubs."""

    def save(folder: Path) -> Any:
        places = {"AutoConfig": "stubs.StubConfig", auto: f"stubs.{cls.__name__}"}
        model = seeded(cls, stubs.StubConfig(auto_map=places, **config))
        model.save_pretrained(folder)
        shutil.copy(STUBS, folder / "stubs.py")
        if slow is not None:
            write_slow(folder, **slow)
        elif of_tokenizer is not None:
            tokenizer(**of_tokenizer).save_pretrained(folder)
        return model

    return save


def write_slow(folder: Path, cls: str = "WordTokenizer", **settings: Any) -> None:
    """Write the configuration of a slow tokenizer of the stubs."""
    shutil.copy(STUBS, folder / "stubs.py")
    values = {
        "tokenizer_class": cls,
        "auto_map": {"AutoTokenizer": [f"stubs.{cls}", None]},
        "unk_token": "<unk>",
        **settings,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(values))
