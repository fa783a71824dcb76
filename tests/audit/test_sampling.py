"""Seed, tickets and sample: golden values, and the laws that the guarantee rests on."""

import hashlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.sampling.beacon import randomness_of
from geneb_ci.audit.sampling.design import (
    STRATUM_TASKS_MIN,
    part_sample_sizes,
    sampled_tasks,
    seed_of,
    strata_of,
    task_parts,
    ticket_of,
    tickets_of,
)
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.errors import UsageProblem
from tests.audit.examples import ROUND, ROUNDS, STRATA, TASKS, commitment

SEEDS = st.binary(min_size=32, max_size=32).map(bytes.hex)
NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=30, unique=True)
SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=6)


def test_golden_draw():
    """One commitment and one published round give these bytes for ever, on every machine."""
    c = commitment().sha256
    assert c == "7154074727e4e00098d2d5e4d69e972e6e866cb13917f4defa1066402852f7de"
    seed = seed_of(c, randomness_of(ROUNDS[ROUND]))
    assert seed == "7f7eed3e76c53f2f74265edaceb854c1d244885bb06c3ea009009c297b4d5205"
    tickets = tickets_of(seed, TASKS)
    assert [(ticket.task, ticket.ticket[:16]) for ticket in tickets] == [
        *(("task-02", "0326cba8e49f137f"), ("task-05", "16916d27ec940dd5")),
        *(("task-03", "1c8d65e4962c3c3a"), ("task-06", "1fdad1f2d62bccd3")),
        *(("task-09", "221652684a12564d"), ("task-04", "289d0fce8ded2680")),
        *(("task-10", "33ef560471bacaca"), ("task-16", "51850ed67dc7dae8")),
        *(("task-14", "59af2abb847344e5"), ("task-08", "5ad053b77621fe13")),
        *(("task-17", "612755bf3b9860ef"), ("task-12", "674f29f6a7df33e6")),
        *(("task-07", "6db5b75f73969b3a"), ("task-00", "8051dfb00ffc06d5")),
        *(("task-15", "8a6a7a11de886a52"), ("task-11", "9a08dd9dca8aacb7")),
        *(("task-13", "9d9ad267ef528769"), ("task-01", "af93784f50462bec")),
        *(("task-18", "c6026ddfa8641930"), ("task-19", "d443c25f5d0393c7")),
    ]
    assert tickets[0].ticket == ticket_of(seed, "task-02")
    tasks = [ticket.task for ticket in tickets]
    assert sampled_tasks(tasks, 5) == ["task-02", "task-05", "task-03", "task-06", "task-09"]
    assert sampled_tasks(tasks, 5, STRATA) == [
        "task-02",
        "task-05",
        "task-09",
        "task-16",
        "task-14",
    ]


def test_seed_and_ticket_hash_raw_bytes():
    """The formulas, spelt out."""
    c, rho = bytes(range(32)), bytes(range(32, 64))
    seed = hashlib.sha256(b"geneb-audit-v1" + c + rho)
    assert seed_of(c.hex(), rho) == seed.hexdigest()
    ticket = hashlib.sha256(seed.digest() + b"\x00" + "Aufgabe-ß".encode())
    assert ticket_of(seed.hexdigest(), "Aufgabe-ß") == ticket.hexdigest()


@given(SEEDS, NAMES, st.data())
def test_the_order_of_the_tasks_plays_no_part(seed, names, data):
    assert tickets_of(seed, data.draw(st.permutations(names))) == tickets_of(seed, names)


@given(SEEDS, NAMES)
def test_every_task_has_its_own_ticket_smallest_first(seed, names):
    tickets = tickets_of(seed, names)
    assert sorted(ticket.task for ticket in tickets) == sorted(names)
    assert [drawn_ticket.ticket for drawn_ticket in tickets] == sorted(
        item.ticket for item in tickets
    )
    assert all(ticket.ticket == ticket_of(seed, ticket.task) for ticket in tickets)


@given(NAMES, st.data())
def test_a_larger_sample_only_adds_tasks(names, data):
    more = data.draw(st.integers(1, len(names)))
    fewer = data.draw(st.integers(1, more))
    assert sampled_tasks(names, more)[:fewer] == sampled_tasks(names, fewer) == names[:fewer]


@given(SIZES, st.data())
def test_a_larger_stratified_sample_only_adds_tasks(sizes, data):
    ranked, strata = shuffled_strata(sizes, data)
    total = len(ranked)
    before: set[str] = set()
    for drawn in range(len(strata), total + 1):
        chosen = sampled_tasks(ranked, drawn, strata)
        assert len(chosen) == drawn
        assert chosen == [task for task in ranked if task in set(chosen)]
        assert before <= set(chosen)
        assert all(set(stratum) & set(chosen) for stratum in strata)
        before = set(chosen)


@given(SIZES, st.data())
def test_a_stratified_sample_takes_the_smallest_tickets_of_each_part(sizes, data):
    ranked, strata = shuffled_strata(sizes, data)
    chosen = set(sampled_tasks(ranked, data.draw(st.integers(len(strata), len(ranked))), strata))
    for part in task_parts(ranked, strata):
        taken = [task in chosen for task in part]
        assert taken == sorted(taken, reverse=True)


def shuffled_strata(sizes: list[int], data: st.DataObject) -> tuple[list[str], list[list[str]]]:
    """Return tasks in any order, with all but the last of the parts as strata."""
    parts = [[f"{part}-{k}" for k in range(size)] for part, size in enumerate(sizes)]
    ranked = data.draw(st.permutations([task for part in parts for task in part]))
    return ranked, parts[:-1]


@given(SIZES, st.data())
def test_places_are_in_proportion(sizes, data):
    """Nobody with a place more than its guarantee has an average that another would better."""
    guaranteed = data.draw(st.integers(0, len(sizes)))
    drawn = data.draw(st.integers(guaranteed, sum(sizes)))
    places = part_sample_sizes(sizes, guaranteed, drawn)
    assert sum(places) == drawn
    assert all(0 <= a <= n for a, n in zip(places, sizes, strict=True))
    least = [int(k < guaranteed) for k in range(len(sizes))]
    won = [Fraction(n, 2 * a - 1) for n, a, g in zip(sizes, places, least, strict=True) if a > g]
    lost = [Fraction(n, 2 * a + 1) for n, a in zip(sizes, places, strict=True) if a < n]
    assert not won or not lost or min(won) >= max(lost)


def test_places_of_the_real_benchmark():
    benchmark = shipped_benchmark()
    strata = strata_of(benchmark, benchmark.task_ids)
    sizes = [len(part) for part in task_parts(benchmark.task_ids, strata)]
    assert sizes == [30, 22, 8, 8, 7, 6, 5, 5, 9]
    assert all(size >= STRATUM_TASKS_MIN for size in sizes[:-1])
    assert part_sample_sizes(sizes, 8, 13) == [3, 3, 1, 1, 1, 1, 1, 1, 1]
    assert part_sample_sizes(sizes, 8, 25) == [8, 6, 2, 2, 2, 1, 1, 1, 2]
    assert part_sample_sizes(sizes, 8, 100) == sizes


def test_strata_hold_only_tasks_that_may_be_drawn():
    benchmark = shipped_benchmark()
    first = benchmark.categories["Enhancers"][:STRATUM_TASKS_MIN]
    assert strata_of(benchmark, first) == [list(first)]
    assert strata_of(benchmark, first[1:]) == []


@pytest.mark.parametrize(
    ("guaranteed", "drawn", "reason"),
    [(2, 1, ": each of the 2 larger categories needs one task"), (2, 11, ""), (0, 11, "")],
)
def test_places_that_there_are_not(guaranteed, drawn, reason):
    with pytest.raises(UsageProblem) as caught:
        part_sample_sizes([4, 6], guaranteed, drawn)
    assert caught.value.message == f"cannot draw {drawn} of 10 tasks{reason}"
