"""Entries of the model registry: the 41 public ones, and what is no entry."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from geneb_ci.cli.main import cli
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.models.entry import WeightsSource, addresses, parse_entry
from geneb_ci.models.registry import ModelRegistry
from reference_harness.extractors.options import parse
from reference_harness.loading.constructor_arguments import converted_options
from tests.each import each
from tests.paths import ROOT
from tools.generated_pages import in_short

OFFICIAL = json.loads((ROOT / "leaderboard/policy/official.json").read_bytes())["files"]
PUBLIC = sorted([*OFFICIAL, "splicebert-1024nt"])
REGISTRY = ModelRegistry(find_layout(ROOT))
SHA = "0" * 64
DOCS = (ROOT / "docs/maintainer/models.md").read_text(encoding="utf-8")


def test_every_public_row_has_an_entry():
    assert len(PUBLIC) == 41
    assert set(PUBLIC) <= set(REGISTRY)


@each("model_id", PUBLIC)
def test_the_entry_of_a_public_row_is_whole(model_id):
    entry_lookup = REGISTRY.entry(model_id)
    assert entry_lookup is not None
    entry = entry_lookup.entry
    assert None not in (entry.params, entry.architecture, entry.embedding_dim, entry.published)
    assert entry.weights is not None
    assert entry.run is not None
    assert entry.loading is not None
    assert entry.sources is not None
    assert entry.sources.loading
    assert any(name.endswith(WEIGHTS) for name in entry.weights.files)
    assert all(address.startswith("https://") for address in addresses(entry.weights).values())
    quirks = set(re.findall(r"^\| `(\w+)` \|", DOCS, re.MULTILINE))
    assert set(entry.loading.quirks) <= quirks


WEIGHTS = (".safetensors", ".bin", ".pth", ".ckpt")


def source(**fields: object) -> str:
    """Return the TOML of an entry whose weights have these fields."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items()]
    return "\n".join(['schema_version = "1.0"', "[weights]", *lines])


NO_ENTRY: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "schema_version: Field required"),
    "not TOML": ("schema_version = ", "the file is not valid TOML: "),
    "not UTF-8": (b"\xff", "the file is not valid TOML: "),
    "deep": ("a = " + "[" * 20_000, "the TOML is nested too deeply"),
    "an unknown key": ('schema_version = "1.0"\nparms = 1', "parms: Extra inputs"),
    "a text for a number": ('schema_version = "1.0"\nparams = "1"', "params: Input should be"),
    "neither extractor nor missing": (
        'schema_version = "1.0"\n[run]\ndtype = "float32"',
        "run: Value error, found neither key, expected the key 'extractor' or the key 'missing'",
    ),
    "no revision": (
        source(kind="huggingface", location="org/model"),
        "revision is missing, which kind 'huggingface' needs",
    ),
    "a branch": (
        source(kind="huggingface", location="org/model", revision="main"),
        "weights/revision: String should match",
    ),
    "no location": (source(kind="zenodo"), "location is missing, which kind 'zenodo' needs"),
    "files of none": (
        source(kind="none") + f'\n[weights.files]\n"a.bin" = "{SHA}"',
        "kind 'none' is a method without weights, but files or a location are named",
    ),
    "http": (
        source(kind="zenodo", location="1", host="http://zenodo.org"),
        "host 'http://zenodo.org' is not an https address",
    ),
    "a host of the Hub": (
        source(kind="huggingface", location="a/b", revision="1" * 40, host="https://x.org"),
        "only kinds zenodo, gdrive, dataverse may have a host; found kind 'huggingface'",
    ),
    "out of the folder": (
        source(kind="url", location="https://x.org")
        + f'\n[weights.files]\n"a/../../b.bin" = "{SHA}"',
        "a file name leads out of the model's folder",
    ),
    "an absolute path": (
        source(kind="url", location="https://x.org") + f'\n[weights.files]\n"/b.bin" = "{SHA}"',
        "String should match",
    ),
    "no record": (
        source(kind="zenodo", location="https://zenodo.org/records/1"),
        "is not the number of a record",
    ),
    "no address": (source(kind="url", location="htps://x y/z"), "is not an https address"),
    "a query": (source(kind="url", location="https://x.org/z?a=b"), "is not an https address"),
    "a folder of nothing": (
        source(kind="url", location="https://x.org", folder="models"),
        "no archive is named",
    ),
    "a number with a query": (
        source(kind="gdrive", location="x") + '\n[weights.ids]\n"b.bin" = "1&export=x#evil"',
        "String should match",
    ),
    "numbers of Zenodo": (
        source(kind="zenodo", location="1")
        + f'\n[weights.files]\n"b.bin" = "{SHA}"\n[weights.ids]\n"b.bin" = "1"',
        "only kinds gdrive, dataverse may have ids; found kind 'zenodo'",
    ),
    "an extractor of no kind": (
        'schema_version = "1.0"\n[run]\nextractor = "kmer"',
        "extractor 'kmer' is neither builtin:NAME nor PATH.py:CLASS",
    ),
    "two dtypes": (
        'schema_version = "1.0"\n[run]\nextractor = "builtin:x"\n[run.options]\ndtype = "bfloat16"',
        "[run] dtype is float32, but [run.options] dtype is bfloat16",
    ),
    "code that is run and not": (
        (
            'schema_version = "1.0"\n[run]\nextractor = "builtin:huggingface"\n'
            '[run.options]\ntrust_remote_code = "true"\n'
            '[loading]\nclass = "a"\noutput = "b"\ntokenizer = "c"\nremote_code = false'
        ),
        "[loading] remote_code is false, but [run.options] trust_remote_code is true",
    ),
    "a number of no file": (
        source(kind="gdrive", location="x") + '\n[weights.ids]\n"b.bin" = "1"',
        "ids has 'b.bin', which is missing from files",
    ),
}


@each("name", NO_ENTRY)
def test_what_is_no_entry(name):
    text, message = NO_ENTRY[name]
    raw = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(BadConfiguration) as caught:
        parse_entry(raw, "model.toml")
    assert caught.value.message.startswith("model.toml: ")
    assert message in caught.value.message
    assert caught.value.fix == "correct the entry; docs/maintainer/models.md explains each key"


ADDRESSES: dict[str, tuple[dict[str, Any], str]] = {
    "zenodo": (
        {"kind": "zenodo", "location": "7995778"},
        "https://zenodo.org/records/7995778/files/a.bin?download=1",
    ),
    "an archive": (
        {"kind": "zenodo", "location": "7995778", "archive": "m.tar.gz", "folder": "models/A"},
        "https://zenodo.org/records/7995778/files/m.tar.gz?download=1#models/A/a.bin",
    ),
    "drive": (
        {"kind": "gdrive", "location": "folder", "ids": {"a.bin": "15m6"}},
        "https://drive.usercontent.google.com/download?id=15m6&export=download&confirm=t",
    ),
    "dataverse": (
        {"kind": "dataverse", "location": "doi:10.7910/DVN/X", "ids": {"a.bin": "11680478"}},
        "https://dataverse.harvard.edu/api/access/datafile/11680478",
    ),
    "a folder": ({"kind": "url", "location": "https://x.org/m/"}, "https://x.org/m/a.bin"),
    "a file": ({"kind": "url", "location": "https://x.org/m/a.bin"}, "https://x.org/m/a.bin"),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_the_address_of_a_file(name):
    fields, address = ADDRESSES[name]
    weights_source = WeightsSource.model_validate({**fields, "files": {"a.bin": SHA}})
    assert addresses(weights_source) == {"a.bin": address}


def test_a_name_that_is_no_id_has_no_entry(tmp_path):
    for name in ("../policy", "a/b", "", "x" * 129, "a\n", "."):
        assert REGISTRY.entry(name) is None
        assert name not in REGISTRY
    assert len(ModelRegistry(find_layout(tmp_path))) == len(REGISTRY), "the shipped one"


def command_output(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, ["models", *arguments], standalone_mode=False)
    assert (done.exit_code, done.return_value or 0) == (0, code), done.output
    return done.output


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENEB_CI_DEBUG", "")
    (tmp_path / "pyproject.toml").write_text('[tool.geneb-ci]\npolicy = "policy"\n')
    folder = tmp_path / "policy/models"
    folder.mkdir(parents=True)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/model.bin").write_bytes(b"weights")
    digest = "1" * 64
    empty = CliRunner().invoke(cli, ["models", "verify"], standalone_mode=False)
    assert isinstance(empty.exception, NothingChecked)
    (folder / "ready.toml").write_text(
        source(kind="url", location="https://x.org/m")
        + f'\n[weights.files]\n"model.bin" = "{digest}"\n[run]\nextractor = "builtin:huggingface"\n'
    )
    (folder / "open.toml").write_text('schema_version = "1.0"\nparams = 86000000\n')
    find_layout.cache_clear()
    assert command_output("list") == (
        "model  weights  run by               open\n"
        "open            -                    no weights; no extractor\n"
        "ready  url      builtin:huggingface  nothing\n"
        "2 models; `geneb-ci models show MODEL` prints its entry\n"
    )
    assert "https://x.org/m/model.bin" in command_output("show", "ready")
    assert (
        json.loads(command_output("show", "ready", "--format", "json"))["weights"]["kind"] == "url"
    )
    assert command_output("verify").endswith("2 models: 0 wrong, 1 ready for an audit\n")
    output = command_output("verify", "ready", "--weights", "weights", code=11)
    assert f", expected sha256 {digest}\n" in output
    assert output.endswith(
        "ready: 0 of 1 file with the digest that the entry states\n"
        "1 model: 1 wrong, 0 ready for an audit\n"
    )
    (folder / "typos.toml").write_text(
        'schema_version = "1.0"\n[weights]\nkind = "none"\n[run]\nextractor = "mine.py:Model"\n'
        f'[run.environment]\nlock = "absent.txt"\nsha256 = "{SHA}"\n'
    )
    typos = command_output("verify", "typos", code=11)
    assert "typos: wrong: there is no extractor mine.py; " in typos
    assert "absent.txt: cannot be read: No such file" in typos
    (folder / "typos.toml").write_text(
        'schema_version = "1.0"\n[weights]\nkind = "none"\n[run]\nextractor = "builtin:nope"\n'
    )
    refusal = "builtin:nope: the harness gave no digest of this extractor"
    assert refusal in command_output("verify", "typos", code=11)
    (folder / "broken.toml").write_text("params = 1")
    assert "ready" in command_output("list"), "one that is broken does not hide the others"
    assert "broken.toml: schema_version: Field required" in command_output("verify", code=11)


@each("model_id", PUBLIC)
def test_the_general_extractor_knows_every_option_of_an_entry(model_id):
    entry = REGISTRY.entry(model_id)
    assert entry is not None
    assert entry.entry.run is not None
    if entry.entry.run.extractor == "builtin:huggingface":
        chosen = parse(converted_options(entry.entry.options))
        assert chosen.dtype == entry.entry.run.dtype
        loading = entry.entry.loading
        assert loading is not None
        assert loading.remote_code in (None, chosen.trust_remote_code)


GENERAL = (
    "GENERator-eukaryote-1.2b-base", "GENERator-eukaryote-3b-base", "GROVER", "GenomeOcean-4B",
    "GenomeOcean-500M", "METAGENE-1", "OmniNA-220m", "PlantCaduceus_l32",
    "agro-nucleotide-transformer-1b", "caduceus-ph_seqlen-1k_d_model-256_n_layer-4_lr-8e-3",
    "caduceus-ps_seqlen-131k_d_model-256_n_layer-16", "gpt2_gene_multi_v2_ft", "gpt2_gene_v1",
    "hyenadna-large-1m-seqlen-hf", "hyenadna-medium-160k-seqlen-hf",
    "nucleotide-transformer-2.5b-multi-species", "splicebert-1024nt",
)  # fmt: skip
"""Models that need no module of their own, by what is published of their loading."""


def test_a_model_without_a_module_of_its_own_is_described_by_options_alone():
    assert len(GENERAL) == 17
    for model_id in GENERAL:
        entry = REGISTRY.entry(model_id)
        assert entry is not None
        run = entry.entry.run
        assert run is not None
        assert (run.extractor, run.missing) == ("builtin:huggingface", None), model_id
        assert not run.options.get("auto_class", "").startswith(("own:", "package:")), model_id
        assert run.options["pooling"], model_id


def test_the_table_says_of_every_model_what_was_exercised_and_what_not():
    page = (ROOT / "docs/reference/models.md").read_text(encoding="utf-8")
    table = page.split("<!-- models -->")[1].split("<!-- /models -->")[0]
    rows = re.findall(r"^\| (\S.*?) \| (\S*) ?\| (.+) \|$", table, re.MULTILINE)
    lock_and_text_by_name = {
        name: (lock, text) for names, lock, text in rows for name in names.split(", ")
    }
    assert set(PUBLIC) <= lock_and_text_by_name.keys()
    for model_id in PUBLIC:
        entry = REGISTRY.entry(model_id)
        assert entry is not None
        assert entry.entry.run is not None
        assert lock_and_text_by_name[model_id][1] == in_short(
            entry.entry.run, lock_and_text_by_name[model_id][0]
        )
        text = entry.entry.run.exercised or entry.entry.run.missing or ""
        tried, comma, open_ = text.partition("not tried with these weights")
        assert tried.strip("; "), f"{model_id}: what was exercised"
        assert comma + open_, f"{model_id}: what was not"


@each("model_id", PUBLIC)
def test_the_lock_of_an_entry_is_the_one_beside_it(model_id):
    entry = REGISTRY.entry(model_id)
    assert entry is not None
    assert entry.entry.run is not None
    environment = entry.entry.run.environment
    if environment is not None:
        raw = (REGISTRY.folder.parent / "environments" / environment.lock).read_bytes()
        assert hashlib.sha256(raw).hexdigest() == environment.sha256


HARNESS_HAS = {"numpy", "torch"}
"""Packages that no lock has: the harness brings them."""


@each("model_id", PUBLIC)
def test_an_environment_has_what_the_model_was_loaded_with(model_id):
    """The code of DNABERT imports einops, which neither transformers nor the harness brings."""
    entry = REGISTRY.entry(model_id)
    assert entry is not None
    assert entry.entry.run is not None
    environment, loading = entry.entry.run.environment, entry.entry.loading
    if environment is None:
        return
    assert loading is not None
    lock = REGISTRY.folder.parent / "environments" / environment.lock
    has = set(re.findall(r"^([a-z0-9-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    loaded_with = {requirement.partition("==")[0] for requirement in loading.loaded_with}
    assert loaded_with - HARNESS_HAS <= has
    needed = {
        re.fullmatch(r"([a-z0-9-]+)(?: \([0-9.x]+\))?", package) for package in loading.packages
    }
    lacking = {package[1] for package in needed if package is not None} - has
    message = entry.entry.run.exercised or ""
    assert all(name in message for name in lacking), f"how to get {lacking} is not said"
