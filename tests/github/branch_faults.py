"""Kinds of fault of a pull request, and pull requests with one or two of them, drawn by a seed."""

import copy
import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.github.branches import Case
from tests.github.conftest import REGULAR, encoded, of_module, sound
from tests.github.history import Files
from tests.github.test_motion import NOTE, OFFICIAL
from tests.hostile.cases_bytes import POINTER
from tests.paths import SUBMISSIONS
from tests.small import CARD, small, small_v11, small_v12

RECORD = "leaderboard/audits/alpha/2026-11-20.json"
CONFLICT = b"<<<<<<< HEAD\n=======\n>>>>>>> main\n"
SETTINGS = b'[tool.geneb-ci]\nsubmissions = "rows"\nignore = ["card"]\n'
HTML = b"<!DOCTYPE html>\n<html><head><title>404</title></head><body>Not Found</body></html>\n"
EXTRACTOR = '''"""Embeds nothing."""


class Model:
    def embed(self, sequences):
        return sequences
'''


@dataclass
class Draft:
    """A pull request before its faults are written: a new row, or a correction of one."""

    name: str
    document: dict[str, Any]
    random: random.Random
    files: Files = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    main: Files = field(default_factory=dict)
    later: Files = field(default_factory=dict)

    @property
    def row_path(self) -> str:
        return f"submissions/{self.name}.json"

    @property
    def card_path(self) -> str:
        return f"submissions/cards/{self.name}.md"

    @property
    def module_path(self) -> str:
        return f"submissions/extractors/{self.name}.py"

    @property
    def paths(self) -> list[str]:
        """Return its own files that are there."""
        return [
            path for path in (self.row_path, self.card_path, self.module_path) if self.has(path)
        ]

    def has(self, path: str) -> bool:
        return path in self.files

    def any_path(self) -> str:
        return self.random.choice(self.paths) if self.paths else self.row_path

    def cells(self) -> list[dict[str, float]]:
        return [cell for tasks in self.document["results"].values() for cell in tasks.values()]

    def cell(self) -> dict[str, float]:
        return self.random.choice(self.cells())

    def write(self) -> None:
        """Write the row as it is now."""
        text = json.dumps(self.document, indent=1).encode() + b"\n"
        self.files[self.row_path] = (REGULAR, text)

    def rewrite(self, path: str, change: Callable[[bytes], bytes]) -> None:
        if self.has(path):
            mode, raw = self.files[path]
            self.files[path] = (mode, change(raw))

    def move(self, path: str, to: str) -> None:
        if self.has(path):
            self.files[to] = self.files.pop(path)


Fault = Callable[[Draft], None]


def in_document(change: Fault) -> Fault:
    """Return a fault of the row's content, which is written after it."""

    def fault(draft: Draft) -> None:
        change(draft)
        draft.write()

    return fault


def replaced(raw: bytes) -> Fault:
    return lambda draft: draft.rewrite(draft.any_path(), lambda _: raw)


def added(path: str, raw: bytes, mode: str = REGULAR) -> Fault:
    return lambda draft: draft.files.update({path: (mode, raw)})


def mode(mode: str) -> Fault:
    def fault(draft: Draft) -> None:
        path = draft.any_path()
        if draft.has(path):
            raw = b"alpha.json" if mode == "120000" else draft.files[path][1]
            draft.files[path] = (mode, raw)

    return fault


def left_out(which: str) -> Fault:
    return lambda draft: draft.files.pop(getattr(draft, which), None) and None


def moved(which: str, folder: str) -> Fault:
    def fault(draft: Draft) -> None:
        path = getattr(draft, which)
        draft.move(path, f"{folder}{path.rsplit('/', 1)[1]}")

    return fault


def deleted(*paths: str) -> Fault:
    return lambda draft: draft.gone.extend(paths)


def _percent(draft: Draft) -> None:
    for cell in draft.cells():
        cell.update({metric: value * 100 for metric, value in cell.items()})


def _missing_task(draft: Draft) -> None:
    tasks = draft.random.choice(list(draft.document["results"].values()))
    tasks.pop(draft.random.choice(list(tasks)))


def _two_decimals(draft: Draft) -> None:
    for cell in draft.cells():
        cell |= {metric: round(value, 2) for metric, value in cell.items()}


def _lower_case(draft: Draft) -> None:
    for cell in draft.cells():
        for metric in list(cell):
            cell[metric.lower()] = cell.pop(metric)


def _constant(draft: Draft) -> None:
    for cell in draft.cells():
        cell.update(dict.fromkeys(cell, 0.5))


def _unpinned(draft: Draft) -> None:
    if "run" in draft.document:
        draft.document["run"]["model"]["revision"] = "main"


def _another_row(draft: Draft) -> None:
    draft.files |= sound(f"{draft.name}-2")


def _others_row(draft: Draft) -> None:
    document = copy.deepcopy(small("beta"))
    document["results"]["full"]["promoter_tata"]["MCC"] = 0.7
    draft.files["submissions/beta.json"] = (REGULAR, encoded(document))


def _renamed_row(draft: Draft) -> None:
    draft.gone.append("submissions/gamma.json")
    draft.files["submissions/gamma-2.json"] = sound("gamma")["submissions/gamma.json"]


def _wrong_signature(draft: Draft) -> None:
    text = EXTRACTOR.replace("(self, sequences)", "(self)").encode()
    draft.files[draft.module_path] = (REGULAR, text)
    if "run" in draft.document:
        draft.document["run"]["extractor"]["sha256"] = hashlib.sha256(text).hexdigest()
        draft.write()


def _windows(draft: Draft) -> None:
    draft.rewrite(draft.any_path(), lambda raw: raw.replace(b"\n", b"\r\n"))


def _conflict(draft: Draft) -> None:
    draft.rewrite(draft.any_path(), lambda raw: CONFLICT + raw)


def _truncated(draft: Draft) -> None:
    draft.rewrite(draft.row_path, lambda raw: raw[: len(raw) // 2])


def _twice(draft: Draft) -> None:
    draft.rewrite(draft.row_path, lambda raw: raw.replace(b"{", b'{"model_id": "x",', 1))


def _record_changed(draft: Draft) -> None:
    draft.main[RECORD] = (REGULAR, b"{}\n")
    draft.files[RECORD] = (REGULAR, b'{"changed": true}\n')


def _record_deleted(draft: Draft) -> None:
    draft.main[RECORD] = (REGULAR, b"{}\n")
    draft.gone.append(RECORD)


def _outdated(draft: Draft) -> None:
    path = draft.any_path()
    if draft.has(path):
        draft.later[path] = (REGULAR, draft.files[path][1] + b"\n")


def _stacked(draft: Draft) -> None:
    draft.files |= sound("parent")
    draft.later |= sound("parent")


def _other_letters(draft: Draft) -> None:
    draft.files[draft.card_path.upper().replace("SUBMISSIONS/CARDS", "submissions/cards")] = (
        *(REGULAR, b"# A card\n"),
    )


def _copied_card(draft: Draft) -> None:
    card = CARD.replace("# A model", "# Model alpha").replace("The human", "The whole human")
    draft.main["submissions/cards/alpha.md"] = (REGULAR, card.encode())
    draft.files[draft.card_path] = (REGULAR, card.encode())


ROW_KINDS: dict[str, Fault] = {
    # What the row says.
    "wrong-id": in_document(lambda d: d.document.update(model_id="another-model")),
    "impossible-id": in_document(lambda d: d.document.update(model_id="../model")),
    "percent": in_document(_percent),
    "missing-task": in_document(_missing_task),
    "unknown-task": in_document(lambda d: d.document["results"]["full"].update(new=d.cell())),
    "nan": in_document(lambda d: d.cell().update(MCC=float("nan"))),
    "two-decimals": in_document(_two_decimals),
    "changed-digit": in_document(lambda d: d.cell().update(Acc=0.123456)),
    "lower-case-metrics": in_document(_lower_case),
    "constant-scores": in_document(_constant),
    "scores-of-another": in_document(
        lambda d: d.document.update(results=small("alpha")["results"])
    ),
    "placeholder": in_document(
        lambda d: d.document["meta"].update(url="https://huggingface.co/OWNER/MODEL")
    ),
    "official": in_document(lambda d: d.document["meta"].update(provenance="official")),
    "name-of-another": in_document(lambda d: d.document["meta"].update(display="Model aIpha")),
    "no-submitter": in_document(lambda d: d.document["meta"].pop("submitted_by", None)),
    "unknown-member": in_document(lambda d: d.document.update(remark="new")),
    "revision-main": in_document(_unpinned),
    # What card and extractor say.
    "no-card": left_out("card_path"),
    "copied-card": _copied_card,
    "empty-card": lambda d: d.rewrite(d.card_path, lambda _: b"# A model\n"),
    "placeholder-card": lambda d: d.rewrite(
        d.card_path, lambda raw: raw.replace(b"The human genome.", b"TODO: name the data")
    ),
    "no-extractor": left_out("module_path"),
    "wrong-signature": _wrong_signature,
    "changed-extractor": lambda d: d.rewrite(d.module_path, lambda raw: raw + b"x = 1\n"),
    # What the files are.
    "symbolic-link": mode("120000"),
    "executable": mode("100755"),
    "submodule": added("submissions/extractors/lib", b"1" * 40, "160000"),
    "big-file": lambda d: d.rewrite(d.any_path(), lambda raw: raw + b" " * 1_000_001),
    "windows-line-ends": _windows,
    "pointer": replaced(POINTER),
    "conflict": _conflict,
    "web-page": replaced(HTML),
    "archive": replaced(b"PK\x03\x04" + bytes(60)),
    "utf-16": lambda d: d.rewrite(
        d.any_path(), lambda raw: raw.decode(errors="replace").encode("utf-16")
    ),
    "byte-order-mark": lambda d: d.rewrite(d.any_path(), lambda raw: b"\xef\xbb\xbf" + raw),
    "empty-file": replaced(b""),
    "half-a-file": _truncated,
    "member-twice": _twice,
}
"""Name to what it does to a draft: faults in its own row, card and extractor."""
KINDS: dict[str, Fault] = ROW_KINDS | {
    # What lies where.
    "row-in-root": moved("row_path", ""),
    "row-in-results": moved("row_path", "results/"),
    "row-in-folder": moved("row_path", "submissions/mine/"),
    "card-in-upstream-folder": moved("card_path", "model_cards/"),
    "extractor-in-upstream-folder": moved("module_path", "harness/extractors/"),
    "second-row": _another_row,
    "others-row": _others_row,
    "others-card": added("submissions/cards/beta.md", NOTE.encode()),
    "deleted-row": deleted("submissions/gamma.json"),
    "deleted-card": deleted("submissions/cards/gamma.md"),
    "renamed-row": _renamed_row,
    "workflow": added(".github/workflows/check.yml", b"on: push\n"),
    "settings": added("pyproject.toml", SETTINGS),
    "broken-settings": added("pyproject.toml", b"[tool.geneb-ci]\nsubmissions = 1\n"),
    "attributes": added(".gitattributes", b"*.json binary filter=lfs\n"),
    "ignored": added(".gitignore", b"*.json\n"),
    "policy": added("leaderboard/policy/official.json", OFFICIAL),
    "benchmark": added("schemas/benchmark.json", b"{}\n"),
    "no-benchmark": deleted("schemas/benchmark.json"),
    "code": added("geneb_ci/check/runner.py", b"x = 1\n"),
    "generated": added("RULES.md", b"rules\n"),
    "upstream-layout": added("benchmark/benchmark_spec.json", b"{}\n"),
    "notebook": added("submissions/run.ipynb", b'{"cells": []}\n'),
    "many-files": lambda d: d.files.update(
        {f"submissions/x/{n}.txt": (REGULAR, b"x") for n in range(60)}
    ),
    "other-letters": _other_letters,
    "line-end-in-name": added("submissions/extractors/a\nb.py", b"x = 1\n"),
    "not-utf-8-name": added("submissions/mod\udce8le.json", b"{}\n"),
    "not-utf-8-extractor-name": added("submissions/extractors/\udcff.py", b"x = 1\n"),
    # What is signed.
    "changed-record": _record_changed,
    "deleted-record": _record_deleted,
    "new-record": added(RECORD, b"{}\n"),
    "own-record": lambda d: d.files.update(
        {f"leaderboard/audits/{d.name}/2026-11-20.json": (REGULAR, b'{"payload": ""}\n')}
    ),
    # What main got since.
    "outdated": _outdated,
    "behind": lambda d: d.later.update(sound("later")),
    "overtaken-name": lambda d: d.later.update(sound(d.name.upper())),
    "stacked": _stacked,
}
"""The same with faults in what lies beside them."""
PUBLIC_ROW = "splicebert-1024nt"
FORMATS = (small, small_v11, small_v12)


def faulty_branch(seed: int) -> tuple[list[str], Case]:
    """Return the kinds of fault of a pull request, and the pull request; the same for each seed.

    A sound row of one of the three formats, new or a correction, has one or two of them. Each kind
    comes once among as many seeds as there are kinds.
    """
    rng = random.Random(seed)
    draft = new_row(rng) if rng.random() < 0.8 else correction(rng)
    return _with_faults(draft, KINDS, seed)


def faulty_public_row(seed: int) -> tuple[list[str], Case]:
    """Return the same of the addition of a public row to the others."""
    raw = (SUBMISSIONS / f"{PUBLIC_ROW}.json").read_bytes()
    draft = Draft(PUBLIC_ROW, json.loads(raw), random.Random(seed))
    draft.files[draft.module_path] = (REGULAR, EXTRACTOR.encode())
    draft.files[draft.card_path] = (REGULAR, CARD.encode())
    draft.files[draft.row_path] = (REGULAR, raw)
    return _with_faults(draft, ROW_KINDS, seed)


def _with_faults(draft: Draft, known: dict[str, Fault], seed: int) -> tuple[list[str], Case]:
    kinds = [list(known)[seed % len(known)]]
    if draft.random.random() < 0.5:
        kinds.append(draft.random.choice([kind for kind in known if kind not in kinds]))
    for kind in sorted(kinds, key=list(known).index):  # what the row says before what a file is
        known[kind](draft)
    return kinds, Case(draft.files, draft.main, tuple(draft.gone), draft.later)


def new_row(rng: random.Random) -> Draft:
    document = rng.choice(FORMATS)("model")
    if "run" in document:
        document |= of_module(document)
    draft = Draft("model", copy.deepcopy(document), rng, files=dict(sound("model")))
    draft.write()
    return draft


def correction(rng: random.Random) -> Draft:
    document = copy.deepcopy(small("alpha"))
    document["meta"]["training_data"] = "human genome, GRCh38"
    draft = Draft("alpha", document, rng)
    draft.files[draft.card_path] = (REGULAR, NOTE.encode())
    draft.write()
    return draft
