"""A card that was copied from another row is found, and what two models have in common is not."""

import json
import re
import shutil
import time
import tomllib
from typing import Any

import pytest

from geneb_ci.cli.main import main
from geneb_ci.submission.names import parse_card
from geneb_ci.submission.other_cards import card_facts, repositories_in
from tests.paths import ROOT, SUBMISSIONS
from tests.rules.deltas import Files, changed, put, row
from tests.rules.place import rows_found
from tests.small import small, small_v11

DIGEST, COMMIT = "ab" * 32, "c" * 40
TRAINING = "Primary transcripts of 72 vertebrates, in fragments of at most 1,024 nucleotides."
HUB = "https://huggingface.co"


def card(title: str, weights: str, training: str) -> str:
    return f"""\
# {title}

- **Architecture:** BERT encoder
- **Weights:** {weights}
- **Input:** 6-mers
- **Pooling:** mean over all tokens
- **Layer:** the last hidden state
- **Zero-shot:** yes
- **Known overlap:** none known

## Training data

{training}
"""


ALPHA = card("Model alpha", f"`alpha.bin` of {HUB}/lab/alpha, sha256 `{DIGEST}`", TRAINING)
OWN = card("Model beta", f"`beta.bin` of {HUB}/lab/beta", "The genomes of 12 yeasts.")
URL, TRAINED = "meta/url", "meta/training_data"


def board(beta_card: str, *changes: Any, document: Any = None) -> list[dict[str, Any]]:
    """Return what is said of the card of beta, beside the row alpha and its card."""
    alpha = changed(small("alpha"), put(URL, f"{HUB}/lab/alpha"), put(TRAINED, "transcripts"))
    own = [put(URL, f"{HUB}/lab/beta"), put(TRAINED, "yeasts"), *changes]
    beta = changed(document or small("beta"), *own)
    files: Files = row(alpha, card_text=ALPHA) | row(beta, card_text=beta_card)
    return [f for f in rows_found(files) if f["file"] == "submissions/cards/beta.md"]


def replaced(**parts: str) -> str:
    """Return beta's own card with lines of the card of alpha in it."""
    title = "Model alpha" if "title" in parts else "Model beta"
    weights = parts.get("weights", f"`beta.bin` of {HUB}/lab/beta")
    return card(title, weights, parts.get("training", "The genomes of 12 yeasts."))


ZENODO = "https://doi.org/10.5281/zenodo.7995778"
# The card of beta: the rules and lines that are named, and words of the messages.
COPIES: dict[str, tuple[str, list[tuple[str, int]], str]] = {
    "its own": (OWN, [], ""),
    "the whole card": (
        ALPHA,
        [("copied-card", 1), ("card-disagrees", 4)],
        'the title "Model alpha" is the name of the model in "alpha.json"',
    ),
    "the title": (
        replaced(title="alpha"),
        [("copied-card", 1)],
        '"Model alpha" is the name of',
    ),
    "the id as title": (
        OWN.replace("# Model beta", "# alpha"),
        [("copied-card", 1)],
        'the title "alpha" is the name of',
    ),
    "training data": (
        replaced(training=TRAINING),
        [("copied-card", 11)],
        'the card has the same text about the training data as the card of "alpha"',
    ),
    "training data, wrapped otherwise": (
        replaced(training=TRAINING.replace(" of ", "\nof ").upper()),
        [("copied-card", 11)],
        "the card has the same text about the training data",
    ),
    "a digest": (
        replaced(weights=f"on request; sha256 `{DIGEST}`"),
        [("copied-card", 4)],
        'the card has the same text about the weights as the card of "alpha"',
    ),
    "weights and training data": (
        card("Model beta", f"`alpha.bin`, sha256 `{DIGEST}`", TRAINING),
        [("copied-card", 4)],
        "the card has the same text about the weights and the training data",
    ),
    "another repository": (
        replaced(weights=f"`model.bin` of {HUB}/lab/alpha"),
        [("card-disagrees", 4), ("copied-card", 4)],
        'the repository of the weights is "lab/alpha" in the card and "lab/beta" in the sub',
    ),
    "another repository, as a name": (
        replaced(weights="`model.bin` of lab/gamma"),
        [("card-disagrees", 4)],
        'the repository of the weights is "lab/gamma" in the card',
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_what_is_left_of_another_card_is_named(name):
    text, expected, words = COPIES[name]
    rows = board(text)
    assert sorted((f["rule"], f["line"]) for f in rows) == sorted(expected)
    assert words in " ".join(f["message"] for f in rows)


SOUND: dict[str, tuple[str, list[Any]]] = {
    "the same training data, as both rows say": (
        replaced(training=TRAINING),
        [put(TRAINED, "Transcripts")],
    ),
    "the same weights, as both rows say": (
        card("Model beta", f"`alpha.bin` of {HUB}/lab/alpha, sha256 `{DIGEST}`", "Yeasts."),
        [put(URL, f"{HUB}/lab/alpha")],
    ),
    "few words that anybody writes": (OWN.replace("The genomes of 12 yeasts.", "Unknown."), []),
    "a link and no link in the row": (replaced(weights=f"`beta.bin` of {ZENODO}"), [put(URL, "")]),
    "a link to data": (replaced(weights=f"`beta.bin`, fed by {HUB}/datasets/lab/alpha"), []),
    "in other letters": (replaced(weights=f"`beta.bin` of {HUB}/Lab/Beta."), []),
    "without a title": (OWN.partition("\n")[2], []),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_rows_have_in_common_is_no_copy(name):
    text, changes = SOUND[name]
    assert board(text, *changes) == []


RUN = {
    "another commit": (f"{HUB}/lab/beta at `{COMMIT}`", "the commit of the weights is"),
    "another digest": (f"{HUB}/lab/beta, sha256 `{'d' * 64}`", "the sha256 of the weights is"),
    "those of the run": (f"{HUB}/lab/beta at `{'1' * 40}`", ""),
}


@pytest.mark.parametrize("name", RUN)
def test_commit_and_digests_of_the_card_are_those_of_the_run(name):
    weights, words = RUN[name]
    rows = board(
        replaced(weights=weights),
        put("run/model/location", "lab/beta"),
        document=small_v11("beta"),
    )
    assert [f["rule"] for f in rows] == ["card-disagrees"] * bool(words)
    assert words in " ".join(f["message"] for f in rows)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("<https://huggingface.co/org/Model> at main", {"org/model"}),
        ("https://hf.co/org/model/tree/main", {"org/model"}),
        ("`model.safetensors` of org/model.", {"org/model"}),
        ("`weights/model.bin`, mean and/or max", set()),
        ("https://huggingface.co/spaces/org/demo", set()),
        ("none", set()),
    ],
)
def test_the_repositories_of_a_text(text, names):
    assert repositories_in(text) == names


def public_card(document: Any, entry: Any) -> str:
    """Return the card of a public row as its registry entry has it, in the words of a template."""
    weights = entry.get("weights", {})
    files = weights.get("files", {})
    links = [paper["address"] for paper in entry.get("papers", ()) if "address" in paper]
    where = weights.get("location", "unknown")
    named = f"<{HUB}/{where}>" if weights.get("kind") == "huggingface" else f"of {where}"
    digests = "; ".join(f"sha256 of `{name}`: `{digest}`" for name, digest in files.items())
    training = f"As the paper says, {' '.join(links)}: {entry.get('pretraining', 'unknown')}"
    weights_text = f"{named} at `{weights.get('revision')}`; {digests}"
    text = card(document["meta"]["display"], weights_text, training)
    return text.replace("**Zero-shot:** yes", "**Zero-shot:** not claimed")


@pytest.mark.parametrize("linked", [False, True], ids=["without links", "with links"])
def test_no_public_row_is_taken_for_a_copy(linked, tmp_path, monkeypatch, capsys):
    """41 rows with cards made of the model registry, some of one repository or one paper."""
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    (tmp_path / "submissions/cards").mkdir(parents=True)
    for path in SUBMISSIONS.glob("*.json"):
        document = json.loads(path.read_bytes())
        entry = tomllib.loads((ROOT / f"leaderboard/policy/models/{path.stem}.toml").read_text())
        text = public_card(document, entry)
        (tmp_path / f"submissions/cards/{path.stem}.md").write_text(text, encoding="utf-8")
        if linked and entry.get("weights", {}).get("kind") == "huggingface":
            document["meta"]["url"] = f"{HUB}/{entry['weights']['location']}"
        (tmp_path / f"submissions/{path.name}").write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    rules = ("--select", "copied-card", "--select", "card-disagrees")
    assert main(["check", "submissions", "--no-cache", *rules]) == 0
    assert "41 submissions" in capsys.readouterr().out


def test_the_public_card_agrees_with_its_row():
    row_file = SUBMISSIONS / "splicebert-1024nt.json"
    assert main(["check", str(row_file), "--no-cache", "--select", "card"]) == 0


def test_a_hostile_card_costs_no_time():
    """100 kB, which a pattern that tries each end of a title would read for hours."""
    text = f"# {'# ' * 24_000}x\n- **Weights:** {'of a/b.' * 3_000}{'https://' * 3_000}\n"
    started = time.process_time()
    facts = card_facts(parse_card(text.encode(), "card.md"))
    assert facts.title.endswith("x")
    assert time.process_time() - started < 2


TEMPLATE = re.compile(r"```markdown\n(# <.+?)```", re.DOTALL)


def test_the_template_of_the_page_is_complete_once_it_is_filled_in():
    (template,), of_a_new_board = (
        TEMPLATE.findall((ROOT / page).read_text(encoding="utf-8"))
        for page in ("docs/contributor/add-a-model.md", "geneb_ci/init/templates/submissions.md.in")
    )
    assert of_a_new_board == [template]
    fields = [f for f in board(template) if f["rule"] == "placeholder-in-card"]
    assert len(fields) >= 9, "every field has a placeholder"
    values = {
        "name on the board": "Model beta",
        "parameters of the encoder, as a number": "86,000,000",
        "the one that ran": f"{HUB}/lab/beta",
        "yes or no": "yes",
        "none, or which sequences of the benchmark the model has seen": "none known",
        "your name, as in the submission": "A. Contributor",
    }
    text = re.sub(r"<([^<>]+)>", lambda match: values.get(match[1], "a statement"), template)
    assert board(text) == []
