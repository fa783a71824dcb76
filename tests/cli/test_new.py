"""`new` on a Hub on loopback: what it reads and asks, and that what it writes is used unchanged."""

import io
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from transformers import T5Config, T5Model

from geneb_ci.cli.main import main
from geneb_ci.cli.models import open_points
from geneb_ci.models.entry import parse_entry
from geneb_ci.models.scaffold import Pooling
from reference_harness.conformance.child_process import property_result
from reference_harness.conformance.subject import Subject
from tests import forked
from tests.harness.extractors.models import MAX_LENGTH, save
from tests.paths import ROOT, SUBMISSIONS
from tests.publish.hub import Hub

REPOSITORY = "example/tiny-dna"
LARGE = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n*.bin filter=lfs -text\n"
CARD_DATA = {
    "cardData": {"license": "mit"},
    "safetensors": {"parameters": {"F32": 9, "F16": 1}, "total": 10},
}
TRIED = ("loads", "weights", "padding", "maximum-length", "layer-and-pooling", "computed-dtype")
"""Properties that depend on what `new` writes; the other 16 take ten seconds more, and hold too."""
AUDIT_LABEL = {
    "--pooling": "mean",
    "--training-data": "the human genome, GRCh38",
    "--overlap": "unknown",
    "--submitted-by": "Ada Example",
}


class ModelHub(Hub):
    """A Hub that also says what is in the card of a model."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, Any] = CARD_DATA
        self.answer = self._told

    def _told(self, step: str, call: Any) -> Any:
        status, headers, body = self.shelf.answer(step, call)
        if step == "info":
            body = json.dumps(json.loads(body) | self.told).encode()
        return status, headers, body


class Terminal(io.StringIO):
    """Somebody to ask."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Mapping[str, bytes]:
    """Return the files of a small BERT with random weights."""
    folder = save("bert", tmp_path_factory.mktemp("tiny"))
    return {path.name: path.read_bytes() for path in folder.iterdir()} | {".gitattributes": LARGE}


@pytest.fixture
def hub(tiny, monkeypatch) -> Iterator[ModelHub]:
    made = ModelHub()
    made.create(f"models/{REPOSITORY}", dict(tiny))
    monkeypatch.setenv("HF_ENDPOINT", made.endpoint)
    yield made
    made.close()


@pytest.fixture
def repository_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lend a repository of submissions as the current folder."""
    for folder in ("submissions/cards", "submissions/extractors", "leaderboard/policy"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "schemas").symlink_to(ROOT / "schemas")
    (tmp_path / "leaderboard/policy/official.json").write_text('{"files": {}}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def new(*more: str, repository: str = REPOSITORY, without: str = "") -> int:
    words = [w for flag, value in AUDIT_LABEL.items() if flag != without for w in (flag, value)]
    return main(["new", repository, "--no-zero-shot", *words, *more])


def changed(hub: Hub, tiny: Mapping[str, bytes], name: str, **values: object) -> None:
    """Replace the repository by one whose JSON file has other values."""
    value = json.loads(tiny[name]) | values
    members = {key: member for key, member in value.items() if member is not None}
    hub.create(f"models/{REPOSITORY}", {**tiny, name: json.dumps(members).encode()})


def test_files_of_a_model_by_options(repository_folder, hub, tiny, capsys):
    assert new() == 0
    revision = hub.shelf.repos[f"models/{REPOSITORY}"].head.oid
    out = capsys.readouterr().out
    message = (
        f"{REPOSITORY} at {revision}: BertModel, width 32, at most {MAX_LENGTH} tokens, float32"
    )
    assert out.splitlines()[0] == message
    raw = (repository_folder / "leaderboard/policy/models/tiny-dna.toml").read_bytes()
    entry = parse_entry(raw, "tiny-dna.toml").entry
    assert open_points(entry) == []
    assert entry.weights is not None
    assert entry.run is not None
    beside = ("config.json", "tokenizer.json", "tokenizer_config.json")
    assert sorted(entry.weights.files) == sorted([*beside, "model.safetensors"])
    assert (entry.licence, entry.params, entry.embedding_dim) == ("mit", 10, 32)
    assert (entry.run.extractor, dict(entry.run.options)) == (
        "builtin:huggingface",
        {"pooling": "mean", "dtype": "float32", "max_length": str(MAX_LENGTH)},
    )
    assert not any("safetensors" in path for path in hub.served)  # no weights were downloaded
    assert main(["models", "verify", "tiny-dna"]) == 0
    weights = repository_folder / "weights"
    weights.mkdir()
    for name, content in tiny.items():
        if name in entry.weights.files:
            (weights / name).write_bytes(content)
    assert main(["models", "verify", "tiny-dna", "--weights", str(weights)]) == 0


@pytest.mark.usefixtures("hub")
def test_the_card_passes_every_rule_of_cards(repository_folder, capsys):
    assert new("--model-id", "mine", "--display", "Mine 87M", "--params", "87101793") == 0
    row = json.loads((SUBMISSIONS / "GROVER.json").read_bytes()) | {"model_id": "mine"}
    row["meta"] |= {"display": "Mine 87M", "provenance": "self-reported", "params": 87101793}
    row["meta"] |= {"submitted_by": AUDIT_LABEL["--submitted-by"], "zero_shot": False}
    (repository_folder / "submissions/mine.json").write_text(json.dumps(row))
    capsys.readouterr()
    words = ["--select", "card", "--format", "json"]
    assert main(["check", "submissions/mine.json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["options", "module"])
def test_the_properties_of_the_extractor_hold(repository_folder, hub, tmp_path, way):
    """The command of the test that `new` writes passes, with the weights of the Hub."""
    assert new(*(["--module"] if way == "module" else [])) == 0
    written = (repository_folder / "test_tiny_dna.py").read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": "written"}
    exec(compile(written, "test_tiny_dna.py", "exec"), space)  # noqa: S102 (what we wrote)
    done = forked.run(
        *("reference_harness", "extractors", "check", *space["CHECK"]),
        *("--model", space["MODEL"], *(w for rule_id in TRIED for w in ("--select", rule_id))),
        cwd=repository_folder,
        env={"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_encoder_with_a_decoder_is_read_by_a_module(
    repository_folder, hub, tiny, tmp_path, capsys
):
    """A T5 with random weights: the states are those of its encoder.

    Of what `new` writes, this is checked in the gate, in this process and from a folder. The
    nightly test above runs the command, which loads torch anew, with the weights of the Hub.
    """
    model = T5Model(T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4))
    model.save_pretrained(tmp_path / "t5")
    files = {path.name: path.read_bytes() for path in (tmp_path / "t5").iterdir()}
    hub.create(f"models/{REPOSITORY}", {**tiny, **files})
    more = ("--max-length", "64")
    assert new(*more) == 2
    assert "pass --module" in capsys.readouterr().err
    assert new("--module", *more) == 0
    weights = tmp_path / "weights"
    weights.mkdir()
    for name, content in {**tiny, **files}.items():
        (weights / name).write_bytes(content)
    module = repository_folder / "submissions/extractors/tiny_dna.py"
    subject = Subject(f"{module}:ModelTinyDna", str(weights), "cpu")
    outcomes = [property_result(name, subject) for name in ("loads", "padding")]
    assert [str(outcome.outcome) for outcome in outcomes] == ["holds", "holds"], outcomes


def test_the_name_is_the_one_that_the_hub_gives(repository_folder, hub):
    """It answers for other letter case, and for a name that a repository had before."""
    hub.told = CARD_DATA | {"id": "Example/Tiny-DNA"}
    assert new() == 0
    entry = tomllib.loads(
        (repository_folder / "leaderboard/policy/models/Tiny-DNA.toml").read_text()
    )
    assert entry["weights"]["location"] == "Example/Tiny-DNA"


def test_facts_of_a_model_of_several_parts_are_those_of_its_text(repository_folder, hub, tiny):
    inner = {"hidden_size": 640, "max_position_embeddings": 48}
    lost = dict.fromkeys(("hidden_size", "max_position_embeddings"))
    changed(hub, tiny, "config.json", text_config=inner, **lost)
    assert new() == 0
    entry = tomllib.loads(
        (repository_folder / "leaderboard/policy/models/tiny-dna.toml").read_text()
    )
    assert (entry["embedding_dim"], entry["max_tokens"]) == (640, 48)


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_a_module_is_python_that_every_check_of_style_passes(repository_folder, pooling):
    assert new("--module", "--pooling", pooling, "--display", 'My """model\\') == 0
    module = repository_folder / "submissions/extractors/tiny_dna.py"
    test = repository_folder / "test_tiny_dna.py"
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "120"]
    command += ["--ignore", "RUF012"]  # attributes of the class are upstream's interface
    done = subprocess.run([*command, module, test], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    entry = tomllib.loads(
        (repository_folder / "leaderboard/policy/models/tiny-dna.toml").read_text()
    )
    assert entry["run"]["extractor"] == "submissions/extractors/tiny_dna.py:ModelTinyDna"
    assert "options" not in entry["run"]


def test_all_that_is_missing_is_named_at_once(repository_folder, hub, tiny, capsys):
    hub.told = {}
    changed(hub, tiny, "config.json", max_position_embeddings=None, auto_map={"AutoModel": "m.M"})
    changed_again = json.loads(tiny["tokenizer_config.json"]) | {"model_max_length": 10**30}
    repo = hub.shelf.repos[f"models/{REPOSITORY}"]
    tree = {**repo.head.tree, "tokenizer_config.json": json.dumps(changed_again).encode()}
    repo.add(tree, "no limit")
    assert main(["new", REPOSITORY]) == 2
    assert " ".join(capsys.readouterr().err.split()) == (
        "geneb-ci: example/tiny-dna does not state all facts of an entry, and without a terminal"
        " they cannot be asked fix: also pass --pooling, --max-length, --params, --licence,"
        " --training-data, --zero-shot or --no-zero-shot, --overlap, --submitted-by,"
        " --trust-remote-code or --no-trust-remote-code"
    )
    assert list((repository_folder / "submissions/cards").iterdir()) == []


@pytest.mark.usefixtures("hub")
def test_what_is_missing_is_asked_on_a_terminal(repository_folder, monkeypatch):
    requests = []

    def prompt(text: str, **_: object) -> object:
        requests.append(text)
        return {"Your name": "Ada"}.get(text, "mean" if "Pooling" in text else "plants")

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["new", REPOSITORY, "--zero-shot", "--overlap", "none"]) == 0
    assert requests == [
        "Pooling of the last hidden states",
        "What the model was trained on",
        "Your name",
    ]
    card = (repository_folder / "submissions/cards/tiny-dna.md").read_text(encoding="utf-8")
    assert "## Training data\n\nplants\n" in card
    assert "- **Zero-shot:** yes\n" in card


def test_remote_code_is_run_only_if_its_author_says_so(repository_folder, hub, tiny):
    changed(hub, tiny, "config.json", auto_map={"AutoModel": "m.M"})
    assert new(without="--pooling") == 2
    assert new("--trust-remote-code", "--pooling", "cls") == 0
    entry = tomllib.loads(
        (repository_folder / "leaderboard/policy/models/tiny-dna.toml").read_text()
    )
    assert entry["run"]["options"]["trust_remote_code"] == "true"
    assert entry["loading"]["quirks"] == ["own_repository_code"]


@pytest.mark.parametrize("form", [(), ("--module",)])
def test_code_that_is_not_run_is_declared_so(repository_folder, hub, tiny, form):
    changed(hub, tiny, "config.json", auto_map={"AutoModel": "m.M"})
    assert new("--no-trust-remote-code", *form) == 0
    if form:
        written = (repository_folder / "submissions/extractors/tiny_dna.py").read_text()
        assert '{"revision": REVISION, "trust_remote_code": False}' in written
    else:
        entry = tomllib.loads(
            (repository_folder / "leaderboard/policy/models/tiny-dna.toml").read_text()
        )
        assert entry["run"]["options"]["trust_remote_code"] == "false"


@pytest.mark.usefixtures("repository_folder", "hub")
def test_a_name_that_begins_with_a_digit():
    assert new("--model-id", "2-mer.v1", "--module") == 0
    assert Path("submissions/extractors/model_2_mer_v1.py").is_file()
    assert "class Model2MerV1(" in Path("submissions/extractors/model_2_mer_v1.py").read_text()


@pytest.mark.usefixtures("repository_folder", "hub")
def test_files_that_exist_are_kept(capsys):
    assert new() == 0
    assert new() == 2
    assert "submissions/cards/tiny-dna.md" in capsys.readouterr().err
    assert new("--force") == 0


REFUSED: dict[str, tuple[dict[str, bytes | None], str]] = {
    "no config": ({"config.json": None}, "has no config.json, so the class that reads"),
    "no tokenizer": (
        {"tokenizer.json": None, "tokenizer_config.json": None},
        "so transformers has no tokenizer for it",
    ),
    "no weights": ({"model.safetensors": None}, "the repository has none of model.safetensors"),
    "config is a list": ({"config.json": b"[]"}, "config.json has [], expected an object"),
    "config is no JSON": ({"config.json": b"{"}, "config.json is not JSON"),
    "deep": ({"config.json": b"[" * 10_000}, "config.json is not JSON"),
    "many files": (
        {f"{number}.json": b"{}" for number in range(200)},
        "found 203 files with",
    ),
    "weights elsewhere": (
        {
            "model.safetensors": None,
            "model.safetensors.index.json": b'{"weight_map": {"a": "../../x.safetensors"}}',
        },
        "the Hub states no SHA-256 of ../../x.safetensors",
    ),
    "weights without a digest": (
        {".gitattributes": b""},
        "the Hub states no SHA-256 of model.safetensors",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_repository_that_cannot_be_described_is_refused(
    repository_folder, hub, tiny, capsys, case
):
    changes, message = REFUSED[case]
    tree = {name: raw for name, raw in {**tiny, **changes}.items() if raw is not None}
    hub.create(f"models/{REPOSITORY}", tree)
    assert new() == 3
    assert message in " ".join(capsys.readouterr().err.split())
    assert list((repository_folder / "submissions/cards").iterdir()) == []


@pytest.mark.usefixtures("repository_folder")
def test_names_and_places_that_do_not_exist(hub, tmp_path, monkeypatch, capsys):
    assert new(repository="example/nothing") == 3
    assert "the Hub has no public model" in capsys.readouterr().err
    assert new(repository="a/b/c") == 2
    assert new("--model-id", "../x") == 2
    hub.close()
    assert new() == 1
    elsewhere = tmp_path.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    assert new() == 2
    assert "is not a repository of submissions" in capsys.readouterr().err
