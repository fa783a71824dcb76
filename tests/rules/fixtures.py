"""One failing and one passing fixture for each rule; the passing one is a near miss if it can."""

import hashlib
from collections.abc import Callable
from typing import Any

from geneb_ci.benchmark import shipped_benchmark
from geneb_ci.config import PRACTICE_BENCHMARK
from tests.hostile.cases_bytes import POINTER
from tests.hostile.text import Raw, written
from tests.rules.board import MARK, board_row, cell
from tests.rules.board import scores as board_scores
from tests.rules.counted import ARITHMETIC
from tests.rules.fixture import (
    Change,
    Files,
    again,
    card_with,
    changed,
    drop,
    policy,
    put,
    raw,
    row,
    token,
    v10,
    v11,
)
from tests.rules.pullrequest import PULLREQUEST
from tests.small import DIGEST, METRICS, small, small_v11

CELL = "results/full/promoter_tata"
EVIDENCE = "evidence/full/promoter_tata"
REASON = "sequences do not fit the memory of one GPU"
SOUND = v10()
SOUND_V11 = v11()
LONG_NAME = "M" * 80


def nested(levels: int) -> Files:
    """Nest arrays in the training data, which is the third level."""
    return v10(token("meta/training_data", "[" * levels + "]" * levels))


def percent(scale: int) -> Files:
    document = small("model")
    for tasks in document["results"].values():
        for scores in tasks.values():
            scores.update({metric: scores[metric] * scale for metric in METRICS})
    return row(document)


def constant(other: float) -> Files:
    scores = {"MCC": 0.0, "Acc": 0.5, "F1": 0.3333}
    tasks = {task: dict(scores) for task in small("model")["results"]["1shot"]}
    tasks["splice_sites"] = dict.fromkeys(METRICS, other) if other else dict(scores)
    return v10(put("results/1shot", tasks))


def beside(other: str) -> Files:
    return row(small("model-2")) | row(small(other))


def copied(score: float) -> Files:
    twin = changed(small("model") | {"model_id": "twin"}, put(f"{CELL}/MCC", score))
    return row(small("model")) | row(twin)


def gaps(reason: str = REASON) -> Files:
    return v11(drop(CELL), drop(EVIDENCE), put("gaps", {"full": {"promoter_tata": reason}}))


def official(score: float) -> Files:
    """List the sound row as official, and give the row with this score."""
    listed = row(changed(small("model"), put("meta/provenance", "official")))
    digest = hashlib.sha256(listed["submissions/model.json"]).hexdigest()
    files = v10(put("meta/provenance", "official"), put(f"{CELL}/MCC", score))
    return files | policy({"model": digest}, {})


def extractor(digest: str) -> Files:
    code = b'"""An extractor."""\n'
    claimed = digest or hashlib.sha256(code).hexdigest()
    return v11(put("run/extractor/sha256", claimed)) | {"submissions/extractors/model.py.txt": code}


def alone(name: str) -> Files:
    benchmark = shipped_benchmark(name)
    document = small_v11("model", benchmark)
    cells = [cell for tasks in document["evidence"].values() for cell in tasks.values()]
    for number, one in enumerate(cells):
        one["predictions_sha256"] = f"{number:064x}"
    # The digest of a shipped file is not for a fixture to hold.
    text = written(changed(document, put("run/benchmark/sha256", DIGEST)))
    return {"alone/model.json": text.encode() + b"\n"}


MCC = small("model")["results"]["full"]["promoter_tata"]["MCC"]
ONE_REGIME_LESS = dict.fromkeys(small("model")["results"]["1shot"], REASON)

STRUCTURE = {
    "irregular-file": ({"submissions/model.json/inner.txt": b"a folder\n"}, SOUND),
    "empty-file": (raw(b"\n"), raw(b"{}\n")),
    "file-too-large": (
        {"submissions/model.json.padded-1000001": SOUND["submissions/model.json"]},
        {"submissions/model.json.padded-1000000": SOUND["submissions/model.json"]},
    ),
    "wrong-encoding": (
        raw(b"\xef\xbb\xbf" + SOUND["submissions/model.json"]),
        v10(put("meta/submitted_by", "Zo\u00eb")),
    ),
    "lfs-pointer": (raw(POINTER), SOUND),
    "invalid-json": (v10(token("meta/zero_shot", "True")), SOUND),
    "too-deep": (nested(15), nested(14)),
    "too-many-values": (raw(b"[" + b"0," * 24_999 + b"0]\n"), SOUND),
    "duplicate-key": (v10(again(CELL, "MCC", 0.99)), SOUND),
    "non-finite-number": (v10(token(f"{CELL}/MCC", "NaN")), v10(token(f"{CELL}/MCC", "0E400"))),
    "unrepresentable-number": (
        v10(token(f"{CELL}/MCC", "1e-400")),
        v10(token(f"{CELL}/MCC", "1e-300")),
    ),
    "lone-surrogate": (
        v10(token("meta/display", '"Model \\ud83e"')),
        v10(token("meta/display", '"Model \\ud83e\\uddec"')),
    ),
    "forbidden-character": (
        v10(put("meta/display", "Model \u202ex")),
        v10(token("meta/training_data", '"human\\n\\tmouse"')),
    ),
    "not-an-object": (raw(b"[]\n"), SOUND),
    "unknown-schema-version": (v10(put("schema_version", "1.2")), SOUND_V11),
    "missing-field": (v10(drop("meta/zero_shot")), v10(put("meta/url", ""))),
    "unknown-field": (
        v10(put("meta/licence", "MIT")),
        v10(put("$schema", "schemas/submission-1.0.schema.json")),
    ),
    "wrong-type": (v10(put(f"{CELL}/Acc", "0.9")), v10(put(f"{CELL}/Acc", 1))),
    "wrong-length": (
        v10(put("meta/display", LONG_NAME + "M")),
        v10(put("meta/display", LONG_NAME)),
    ),
    "malformed-value": (v11(put("run/model/revision", "main")), SOUND_V11),
}
COVERAGE = {
    "missing-regime": (
        v10(drop("results/1shot")),
        v11(drop("results/1shot"), drop("evidence/1shot"), put("gaps", {"1shot": ONE_REGIME_LESS})),
    ),
    "unknown-regime": (v10(put("results/5shot", {})), SOUND),
    "missing-task": (v10(drop(CELL)), gaps()),
    "unknown-task": (
        v10(put("results/full/promoter_tato", dict.fromkeys(METRICS, 0.5))),
        SOUND,
    ),
    "missing-metric": (v10(drop(f"{CELL}/F1")), SOUND),
    "unknown-metric": (v10(put(f"{CELL}/AUC", 0.9)), SOUND),
    "declared-gap": (gaps(), SOUND_V11),
    "needless-gap": (v11(put("gaps", {"full": {"promoter_tata": REASON}})), gaps()),
    "gap-without-reason": (gaps(reason="n/a"), gaps(reason="no memory.")),
    "missing-evidence": (v11(drop(EVIDENCE)), SOUND_V11),
    "evidence-without-scores": (v11(drop(CELL)), gaps()),
    "wrong-seed-count": (v11(put(f"{EVIDENCE}/per_seed/MCC", [MCC] * 4)), SOUND_V11),
}
RANGES = {
    "score-out-of-range": (v10(put(f"{CELL}/Acc", 1.0001)), v10(put(f"{CELL}/Acc", 1))),
    "percent-scores": (percent(100), percent(1)),
    "all-scores-equal": (constant(0), constant(0.6)),
}
IDENTITY = {
    "bad-model-id": (row(small("-model")), row(small("0-model"))),
    "reserved-model-id": (row(small("con.v2")), row(small("v2.con"))),
    "model-id-collision": (beside("MODEL_2"), beside("model-22")),
    "file-name-mismatch": (v10(name="other"), SOUND),
    "blank-display-name": (
        v10(put("meta/display", "---")),
        v10(put("meta/display", "-\u0394-")),
    ),
    "bad-url": (
        v10(put("meta/url", "https://huggingface.co@example.org/model")),
        v10(put("meta/url", "https://huggingface.co/org/@model")),
    ),
    "bad-parameter-count": (
        v10(put("meta/params", -1), card_text=card_with("86M", "unknown")),
        v10(put("meta/params", 0), card_text=card_with("86M", "0")),
    ),
    "parameter-count-disagrees": (
        SOUND | policy({}, {"model": {"params": 86000001}}),
        SOUND | policy({}, {"model": {"params": 1, "params_in_paper": 86000000}}),
    ),
    "missing-submitter": (v10(put("meta/submitted_by", " ")), SOUND),
    "identical-results": (copied(MCC), copied(0.1)),
}


def on_board(*changes: Change) -> Files:
    """Put a row after some changes among the rows of the board."""
    return {MARK: b"See board.py.\n"} | row(changed(board_row("model"), *changes))


def every(change: Callable[[str, str, float], float], *regimes: str) -> Change:
    """Change every MCC of some regimes, or of all, and the other scores with it."""

    def apply(document: Any) -> None:
        for regime in regimes or document["results"]:
            for task, scores in document["results"][regime].items():
                scores.update(cell(task, change(regime, task, scores["MCC"])))

    return apply


def rounded(regime: str, digits: int) -> Change:
    """Round the scores of a regime."""

    def apply(document: Any) -> None:
        for scores in document["results"][regime].values():
            scores.update({metric: round(value, digits) for metric, value in scores.items()})

    return apply


def other(name: str, share: float = 1.0) -> Change:
    """Take a share of every MCC from another row."""
    theirs = board_scores(name)
    return every(lambda r, t, x: (1 - share) * x + share * theirs[r][t]["MCC"])


def sized(params: int, shown: str) -> Files:
    return v11(put("meta/params", params), card_text=card_with("86M", shown))


SOUND_ON_BOARD = on_board()
ONE = "results/full/task_7"
SITE = board_scores("model")["full"]["site_all"]["MCC"]
SEVEN = board_scores("model")["full"]["task_7"]["MCC"]
PLAUSIBILITY = {
    "nested-tasks": (
        on_board(put("results/full/site_all", cell("site_all", SITE + 0.12))),
        on_board(put("results/full/site_all", cell("site_all", SITE + 0.02))),
    ),
    "implausible-cell": (
        on_board(put(ONE, cell("task_7", SEVEN + 0.2))),
        on_board(put(ONE, cell("task_7", SEVEN + 0.02))),
    ),
    "few-shot-above-full": (
        on_board(put("results/10shot/task_7", cell("task_7", SEVEN + 0.2))),
        on_board(put("results/10shot/task_7", cell("task_7", SEVEN - 0.2))),
    ),
    "regimes-out-of-order": (
        on_board(every(lambda _r, _t, x: x + 0.3, "1shot")),
        SOUND_ON_BOARD,
    ),
    "uniform-gain": (
        on_board(other("row-03"), every(lambda _r, _t, x: x + 0.03)),
        SOUND_ON_BOARD,
    ),
    "near-copy": (on_board(other("row-03", 0.98)), SOUND_ON_BOARD),
    "blended-rows": (
        on_board(*(other(f"row-{i:02}", 1 / (i + 1)) for i in range(6))),
        on_board(other("row-03", 0.4)),
    ),
    "constant-predictions": (
        on_board(put(ONE, {"MCC": 0.0, "Acc": 0.5, "F1": 1 / 3})),
        SOUND_ON_BOARD,
    ),
    "round-numbers": (
        on_board(rounded("full", 2)),
        SOUND_ON_BOARD,
    ),
    "size-against-width": (sized(86_000, "86k"), sized(86_000_000, "86M")),
}
PROVENANCE = {
    "self-claimed-level": (v10(put("meta/provenance", "verified")), SOUND),
    "changed-official-file": (official(0.99), official(MCC)),
    "unknown-harness-version": (
        v10(put("harness_version", "GENEB-0.2.0")),
        v10(put("harness_version", "geneb-0.1.0")),
    ),
    "wrong-benchmark": (v11(put("run/benchmark/name", "GENEB-mini")), SOUND_V11),
    "practice-run": (alone(PRACTICE_BENCHMARK), SOUND_V11),
    "wrong-dataset-revision": (v11(put("run/dataset/revision", "0" * 40)), SOUND_V11),
    "unpinned-model": (
        v11(put("run/model/revision", None)),
        v11(put("run/model", {"kind": "none", "location": "", "revision": None, "weights": {}})),
    ),
    "modified-harness": (v11(put("run/harness/dirty", Raw("true"))), SOUND_V11),
    "impossible-dates": (
        v11(put("run/finished_at", "2026-11-20T08:29:59Z")),
        v11(put("run/finished_at", "2026-11-20T08:30:00.5Z")),
    ),
    "extractor-mismatch": (extractor("0" * 64), extractor("")),
    "no-run-details": (SOUND, SOUND_V11),
}
CARD = {
    "missing-card": (raw(SOUND["submissions/model.json"]), SOUND),
    "unreadable-card": (
        SOUND
        | {"submissions/cards/model.md": b"# A model\n\n- **Pooling:** moyenne g\xe9n\xe9rale\n"},
        SOUND,
    ),
    "incomplete-card": (
        v10(card_text=card_with("- **Pooling:** mean over all tokens\n", "")),
        v10(
            card_text=card_with(
                "- **Pooling:** mean over all tokens\n- **Layer:** the last hidden state\n",
                "- **Pooling:** mean over the last hidden layer\n",
            )
        ),
    ),
    "placeholder-in-card": (
        v10(card_text=card_with("BERT encoder", "<architecture of the model>")),
        v10(card_text=card_with("BERT encoder", "BERT, <https://example.org>")),
    ),
    "card-disagrees": (
        v10(card_text=card_with("86M", "117M")),
        v10(card_text=card_with("86M", "85,974,528")),
    ),
    "overlap-despite-zero-shot": (
        v10(card_text=card_with("none known", "chromosome 21 of the human genome")),
        v10(
            put("meta/zero_shot", value=False),
            card_text=card_with("none known", "chromosome 21").replace("yes", "no"),
        ),
    ),
}
# The failing fixture of this rule is sound: what fails is a rule that the test puts in.
INTERNAL = {"check-crashed": (SOUND, SOUND)}

FIXTURES: dict[str, tuple[Files, Files]] = {
    **STRUCTURE,
    **COVERAGE,
    **RANGES,
    **ARITHMETIC,
    **IDENTITY,
    **PLAUSIBILITY,
    **PROVENANCE,
    **CARD,
    **INTERNAL,
    **PULLREQUEST,
}
