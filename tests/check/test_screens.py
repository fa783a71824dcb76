"""What arrays settle of a row changes no finding: every rule, run or settled, finds the same."""

import dataclasses
import json
import math
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geneb_ci.check.place import Place, place_of
from geneb_ci.check.registry import RULES
from geneb_ci.check.rule import Context
from geneb_ci.check.rules.plausibility_rows import GAIN_RESIDUAL
from geneb_ci.check.runner import Checker, FileResult
from geneb_ci.check.screens import SCREENS, PlainRows, settles
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.statistics.beside import Beside
from geneb_ci.statistics.neighbours import NEAR, affine_copy
from geneb_ci.statistics.reference import ScoreTable
from geneb_ci.statistics.view import RowView
from geneb_ci.submission.document import parse_document
from tests.paths import SUBMISSIONS
from tests.rules.fixtures import fixture
from tests.rules.place import found

RERUN = 45
"""Rows beside the public ones, so that a fit of 64 leaves some of the table out."""
REGIMES = ("full", "10shot", "1shot")
METRICS = ("MCC", "Acc", "F1")
ROWS = [json.loads(path.read_bytes()) for path in sorted(SUBMISSIONS.glob("*.json"))]
Row = dict[str, Any]
Edit = Callable[[Row, random.Random], None]
CHECKER, PLAIN = Checker(RULES), PlainRows()


def drawn_row(draw: random.Random, name: str) -> Row:
    """Return a row of which each cell is that of some public row: sound, but of no model."""
    row: Row = json.loads(json.dumps(draw.choice(ROWS))) | {"model_id": name}
    for regime, tasks in row["results"].items():
        row["results"][regime] = {task: dict(draw.choice(ROWS)["results"][regime][task])
                                  for task in tasks}  # fmt: skip
    return row


def rerun(draw: random.Random, name: str) -> Row:
    """Return a public row with noise that tells models apart, but no task from its kin."""
    row: Row = json.loads(json.dumps(draw.choice(ROWS))) | {"model_id": name}
    for _, cell in cells(row):
        cell["MCC"] = min(1.0, max(-1.0, cell["MCC"] + draw.gauss(0.0, 0.01)))
    return row


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder, draw = tmp_path_factory.mktemp("rows"), random.Random(5)
    drawn = [rerun(draw, f"rerun-{number}") for number in range(RERUN)]
    for row in [*ROWS, *drawn]:
        (folder / f"{row['model_id']}.json").write_text(json.dumps(row))
    return place_of(folder, find_layout, tuple(sorted(folder.glob("*.json"))), None)


def context_of(place: Place, row: Row, name: str) -> Context:
    raw = json.dumps(row).encode()
    path = place.peers.paths[0].parent / f"{name}.json"
    return CHECKER.context_in(parse_document(raw, path, path.name), place)


def both(context: Context) -> tuple[FileResult, FileResult, Context]:
    """Return what all rules find, and what those find that are not settled."""
    plain = dataclasses.replace(context, plain=PLAIN.of(context))
    return CHECKER.result(context), CHECKER.result(plain), plain


# Changes of a row. ------------------------------------------------------------------------------


def cells(row: Row) -> Iterator[tuple[str, Row]]:
    for regime in REGIMES:
        for cell in row["results"].get(regime, {}).values():
            yield regime, cell


def some_cell(row: Row, draw: random.Random) -> Row:
    return draw.choice([cell for _, cell in cells(row)])


SPECIAL = (0.0, 1.0, -1.0, 0.5, 1, 0, -0.25, 1e-12, 1e-320, 1e300, math.nan, -math.inf, 10**400,
           0.1234, 0.7, 1 + 1e-15, True, None, "0.5", [0.5])  # fmt: skip
STEPS = (1e-16, 3e-14, 1e-13, 2e-13, 1e-9, 1e-6, 1e-3, 0.05, 0.3)


def special(row: Row, draw: random.Random) -> None:
    some_cell(row, draw)[draw.choice(METRICS)] = draw.choice(SPECIAL)


def nudged(row: Row, draw: random.Random) -> None:
    cell, step = some_cell(row, draw), draw.choice(STEPS) * draw.choice((-1, 1))
    for metric in draw.choice([("MCC",), ("Acc",), ("F1",), METRICS]):
        cell[metric] += step


def perfect(row: Row, draw: random.Random) -> None:
    values = draw.choice(((1.0, 1.0, 1.0), (0.0, 0.5, 1 / 3), (-1.0, 0.0, 0.0)))
    some_cell(row, draw).update(dict(zip(METRICS, values, strict=True)))


def rounded(row: Row, draw: random.Random) -> None:
    digits, share = draw.choice((1, 2, 4, 6, 8, 12)), draw.choice((0.01, 0.3, 0.4, 1.0))
    for _, cell in cells(row):
        if draw.random() < share:
            cell.update({metric: round(x, digits) for metric, x in cell.items()})


def single(row: Row, draw: random.Random) -> None:
    regime = draw.choice(REGIMES)
    for name, cell in cells(row):
        if name == regime:
            cell.update({m: struct.unpack("f", struct.pack("f", x))[0] for m, x in cell.items()})


def equal(row: Row, draw: random.Random) -> None:
    regime, metric, x = draw.choice(REGIMES), draw.choice(METRICS), draw.random()
    for name, cell in cells(row):
        if name == regime:
            cell[metric] = x


def swapped(row: Row, draw: random.Random) -> None:
    one, two = draw.sample(REGIMES, 2)
    row["results"][one], row["results"][two] = row["results"][two], row["results"][one]


def moved(row: Row, draw: random.Random) -> None:
    """Raise or lower the MCC of a regime, or of a few of its tasks."""
    regime, by = draw.choice(REGIMES), draw.choice((-0.2, -0.05, 0.01, 0.05, 0.2, 0.5))
    share = draw.choice((0.05, 0.5, 0.75, 1.0))
    for name, cell in cells(row):
        if name == regime and draw.random() < share:
            cell["MCC"] = min(1.0, max(-1.0, cell["MCC"] + by))


def copied(row: Row, draw: random.Random) -> None:
    """Make a part of a row that of another, with noise, or a linear function of it."""
    other, noise = draw.choice(ROWS), draw.choice((0.0, 1e-5, 5e-4, 1e-3, 5e-3, 9e-3, 0.011, 0.02))
    share, slope = draw.choice((0.09, 0.12, 0.15, 1.0)), draw.choice((1.0, 1.0, 0.95, 0.8))
    for regime in REGIMES:
        for task, cell in row["results"].get(regime, {}).items():
            if draw.random() < share and task in other["results"][regime]:
                x = slope * other["results"][regime][task]["MCC"] + draw.gauss(0.0, noise)
                cell["MCC"] = min(1.0, max(-1.0, x))


def blended(row: Row, draw: random.Random) -> None:
    one, two, weight = draw.choice(ROWS), draw.choice(ROWS), draw.choice((0.1, 0.5, 0.8))
    for regime in REGIMES:
        for task, cell in row["results"].get(regime, {}).items():
            x, y = (other["results"][regime].get(task, cell)["MCC"] for other in (one, two))
            cell["MCC"] = weight * x + (1 - weight) * y


def named(row: Row, draw: random.Random) -> None:
    """Give a row another set of cells than that of the benchmark."""
    regime = draw.choice(REGIMES)
    tasks = row["results"][regime]
    task = draw.choice(list(tasks))
    change = draw.randrange(7)
    if change == 0:
        del tasks[task]
    elif change == 1:
        tasks["another"] = dict(tasks[task])
    elif change == 2:
        tasks["another"] = tasks.pop(task)
    elif change == 3:
        tasks[task]["AUC"] = 0.5
    elif change == 4:
        tasks[task]["AUC"] = tasks[task].pop("F1")
    elif change == 5:
        row["results"]["5shot"] = row["results"].pop(regime)
    else:
        tasks[task] = draw.choice(([0.5, 0.5, 0.5], "abc", {}, None))


def with_evidence(row: Row, draw: random.Random) -> None:
    regime = draw.choice(REGIMES)
    task, cell = draw.choice(list(row["results"][regime].items()))
    canonical = dict(cell) | {draw.choice(METRICS): draw.random()}
    seeds = {metric: [draw.random() for _ in range(5)] for metric in METRICS}
    evidence = {"canonical": canonical, "per_seed": seeds, "n_test": draw.choice((7, None))}
    row["schema_version"], row["evidence"] = "1.1", {regime: {task: evidence}}


EDITS: tuple[Edit, ...] = (
    special, nudged, perfect, rounded, single, equal, swapped, moved, copied, blended,
)  # fmt: skip
LAST: tuple[Edit, ...] = (named, with_evidence)
"""Edits after which another may find a cell that is none."""


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**32),
    edits=st.lists(st.sampled_from(EDITS), max_size=3),
    last=st.lists(st.sampled_from(LAST), max_size=1),
    is_listed=st.booleans(),
)
def test_rules_find_the_same_where_arrays_settle_some(place, seed, edits, last, is_listed):
    draw = random.Random(seed)
    path = draw.choice(place.peers.paths)
    row = json.loads(path.read_bytes()) if is_listed else drawn_row(draw, "new")
    for edit in [*edits, *last]:
        try:
            edit(row, draw)
        except (TypeError, OverflowError):  # of a cell that an earlier edit made odd
            continue
    every, left, _ = both(context_of(place, row, path.stem if is_listed else "new"))
    assert left.findings == every.findings
    assert left.skipped == every.skipped


def test_nearly_every_rule_is_settled_of_a_sound_row(place):
    """Else the arrays cost more than they save."""
    draw = random.Random(7)
    contexts = [both(context_of(place, drawn_row(draw, "new"), "new"))[2] for _ in range(20)]
    counts = {
        rule: sum(one.plain is not None and settles(rule, one.plain, one) for one in contexts)
        for rule in SCREENS
        if rule not in {"nested-tasks", "few-shot-above-full"}  # here, cells are of many models
    }
    assert {rule: n for rule, n in counts.items() if n < len(contexts) / 2} == {}


OF_OTHER_ROWS = {"percent-scores", "rounded-scores"}
"""Rules whose findings no plain row has; those on evidence are the others."""
TRIES = 300


def test_no_finding_of_a_plain_row_is_settled(place):
    """Every test of `SCREENS` meets a row of which it must not settle its rule."""
    draw = random.Random(3)
    left = {name for name, test in SCREENS.items() if test is not SCREENS["wrong-seed-mean"]}
    left -= OF_OTHER_ROWS
    for number in range(TRIES):
        row = drawn_row(draw, "new")
        EDITS[number % len(EDITS)](row, draw)
        every, few, plain = both(context_of(place, row, "new"))
        assert few.findings == every.findings
        if plain.plain is not None:
            left -= {one.rule for one in every.findings}
        if not left:
            return
    assert left == set()


@pytest.mark.parametrize("rule", SCREENS)
def test_fixtures_have_the_same_findings(rule, monkeypatch):
    expected = found(fixture(f"{rule}/fail"))
    result = Checker.result

    def settled(self: Checker, context: Context) -> FileResult:
        return result(self, dataclasses.replace(context, plain=PLAIN.of(context)))

    monkeypatch.setattr(Checker, "result", settled)
    again = found(fixture(f"{rule}/fail"), RULES[::-1])  # findings of `RULES` are remembered
    assert again == expected
    assert rule in {one["rule"] for one in expected}


def test_a_copy_of_a_row_that_is_nearly_constant_is_not_settled():
    """What rounding makes of scores a few units in the last place apart, amplified to a row."""
    draw, regimes, copies = random.Random(1), (slice(0, 100), slice(100, 200)), 0
    for _ in range(60):
        base, steps = draw.uniform(0.1, 0.9), [draw.choice((0, 1, 2, 3)) for _ in range(100)]
        unit = 4 * math.ulp(base)
        rest = [draw.uniform(-0.2, 0.8) for _ in range(400)]
        other = tuple(base + unit * step for step in steps) + tuple(rest[:100])
        own = tuple(0.3 + 0.1 * ((score - base) / unit) for score in other[:100])
        table = ScoreTable(("a", "b"), (other, tuple(rest[200:])), {}, regimes)
        view = RowView(shipped_benchmark(), table, own + tuple(rest[100:200]), None)
        copies += affine_copy(view, regimes[0], GAIN_RESIDUAL, NEAR) is not None
        row = np.array(view.row).reshape(2, 100)
        assert Beside(table).has_affine(row, None, GAIN_RESIDUAL)
    assert copies
