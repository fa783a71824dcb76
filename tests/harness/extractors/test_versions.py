"""A bare error of torch or transformers is followed by what is known of versions."""

import json
from pathlib import Path

import pytest
import torch
import transformers

from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.extractors.version_advice import version_advice

IMPORTS = "import torch\nfrom transformers import BertModel\n"
AS_IT_IS = "from transformers import BertModel as Own\n"


def building(statement: str) -> str:
    """Return code of a model that runs a statement while it is built."""
    head = "class Own(BertModel):\n    def __init__(self, config):\n"
    return f"{IMPORTS}{head}        super().__init__(config)\n        {statement}\n"


ON_META = "transformers 5 builds models on the meta device"
NAME_GONE = "imports a name that the installed library does not have"
OTHER_CODE = "may be for another version"
# The author's code, words of the bare error, words of what it means.
CODE = {
    "a tensor is read": (
        building("self.sum = float(torch.arange(4).float().sum())"),
        "cannot be called on meta tensors",
        ON_META,
    ),
    "a tensor becomes an array": (
        building("self.slopes = torch.ones(4).numpy()"),
        "meta",
        ON_META,
    ),
    "a tensor becomes a list": (building("self.x = torch.ones(4).tolist()"), "meta", ON_META),
    "a name is gone": (
        f"from transformers.modeling_utils import no_such_name\n{AS_IT_IS}",
        "cannot import name",
        NAME_GONE,
    ),
    "a module is gone": (
        f"import transformers.deepspeed_gone\n{AS_IT_IS}",
        "No module named 'transformers.deepspeed_gone'",
        NAME_GONE,
    ),
    "a method is gone": (
        building("self.no_such_method_of_old()"),
        "object has no attribute 'no_such_method_of_old'",
        OTHER_CODE,
    ),
    "an argument is gone": (
        f"{IMPORTS}class Own(BertModel):\n    def forward(self, **_):\n        torch.ones(no=1)\n",
        "Own does not run on a sequence",
        "installed are transformers",
    ),
    "a package is missing": (
        f"import no_such_package_at_all\n{AS_IT_IS}",
        "no_such_package_at_all",
        "needs a package that is missing",
    ),
}


def own_code(folder: Path, code: str, version: str = "4.28.0") -> None:
    """Let the model be of a class of its author's, saved by a version of transformers."""
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoModel": "own.Own"}, "transformers_version": version}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(code)


@pytest.mark.parametrize("name", CODE)
def test_a_bare_error_is_followed_by_what_is_known(name, copy):
    code, words, meaning = CODE[name]
    own_code(copy, code)
    with pytest.raises(ExtractorError) as caught:
        HuggingFaceExtractor(str(copy), trust_remote_code=True)
    text = str(caught.value)
    assert words in text
    assert meaning in text
    installed = f"transformers {transformers.__version__} and torch {torch.__version__}"
    named = "the model's config.json names transformers 4.28.0 (an older version)"
    assert f"installed are {installed}; {named}" in text
    assert "`[run.environment]`" in text
    assert "your own extractor (docs/contributor/extractor.md)" in text


def test_an_architecture_that_is_too_new_is_said(copy):
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "dna-of-tomorrow", "transformers_version": "9.1.0"}
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(ExtractorError) as caught:
        HuggingFaceExtractor(str(copy))
    text = str(caught.value)
    assert "does not have the model's architecture or tokenizer" in text
    assert "the model's config.json names transformers 9.1.0 (a newer version)" in text


@pytest.mark.parametrize(
    ("error", "config", "text"),
    [
        (OSError("no connection"), "{}", ""),
        (MemoryError(), "{}", ""),
        (ValueError("x"), '{"transformers_version": 5}', "config.json names no version"),
        (ValueError("x"), '{"transformers_version": ["4"]}', "config.json names no version"),
        (ValueError("x"), "not JSON", "config.json names no version"),
        (ValueError("x"), "[" * 10_000, "config.json names no version"),
        (
            ValueError("x"),
            '{"transformers_version": "4.41.0.dev0"}',
            "names transformers 4.41.0.dev0 (an old",
        ),
    ],
)
def test_what_is_no_version_is_not_one(error, config, text, tmp_path):
    (tmp_path / "config.json").write_text(config)
    known = version_advice(tmp_path, error, own_code=False)
    assert text in known
    assert bool(known) == bool(text)
    assert ("write your own extractor" in known) == ("old" in known)


def test_a_class_that_nothing_maps_is_not_passed_by(copy):
    """`architectures` names it, a module beside it defines it, and the library has its own."""
    own_code(copy, f"{IMPORTS}class Own(BertModel):\n    pass\n")
    config = json.loads((copy / "config.json").read_text()) | {"architectures": ["Own"]}
    del config["auto_map"]
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(ExtractorError) as caught:
        HuggingFaceExtractor(str(copy))
    text = str(caught.value)
    assert "names the class Own, which own.py defines, but has no auto_map" in text
    assert "auto_class=repository:own.Own with trust_remote_code=true" in text
    assert "trust_remote_code=false" in text
    library = HuggingFaceExtractor(str(copy), trust_remote_code=False)
    named = HuggingFaceExtractor(str(copy), trust_remote_code=True, auto_class="repository:own.Own")
    assert (type(library.model).__name__, type(named.model).__name__) == ("BertModel", "Own")
