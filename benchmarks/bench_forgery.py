"""Measure how many forged scores each family of rules detects; `--write` keeps the table.

    python -m benchmarks.bench_forgery --trials 1000 --write

Documents are made in memory, so that only the rules are measured.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.forge import Board, Forgery, attacks
from geneb_ci.check.registry import FAMILIES as ALL_FAMILIES
from geneb_ci.check.registry import RULES
from geneb_ci.check.rule import Context, Policy
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.finding import Severity
from geneb_ci.submission.document import Document
from geneb_ci.submission.peers import Peers, peers_of
from reference_harness.formats.benchmark import Benchmark
from tests.paths import ROOT, SUBMISSIONS

TRIALS = 1000
SEED = 20_261_120
# Families that look at numbers; a family that is not there yet is left out.
FAMILIES = ("arithmetic", "plausibility")
SIZE = re.compile(r"(?<=changed by )[\d.]+|(?<=rounded to )\d")
"""Pattern of the size in an attack's name; the sizes of one attack share a row of the table."""
PAGE = ROOT / "docs/research/forgery.md"
BEGIN, END = "<!-- bench -->\n", "<!-- /bench -->"


def context_of(forgery: Forgery, benchmark: Benchmark, peers: Peers) -> Context:
    """Return the context of a forged submission among all real ones, except that of its name."""
    value: dict[str, Any] = {"schema_version": "1.0", **forgery._asdict()}
    path = SUBMISSIONS / f"{forgery.model_id}.json"
    return Context(
        document=Document(path.name, path, "", "", value, {}, ()),
        submission=None,
        reported={},
        benchmark=benchmark,
        policy=Policy(),
        peers=peers,
        card=None,
        is_in_repository=True,
        is_practice=False,
        extractor=None,
    )


def reporting_families(context: Context, families: Iterable[str]) -> set[tuple[str, Severity]]:
    """Return the families of rules that report a finding, each with the severity of its rule."""
    return {
        (rule.family, rule.severity)
        for rule in RULES
        if rule.family in families and next(iter(rule.check(context)), None) is not None
    }


def table_lines(board: Board, peers: Peers, families: tuple[str, ...], trials: int) -> list[str]:
    """Return the lines of the table; findings about the unchanged row are not counted."""
    unchanged = {
        row["model_id"]: reporting_families(
            context_of(Forgery(row["model_id"], row["results"]), board.benchmark, peers), families
        )
        for row in board.rows
    }
    print(
        "unchanged rows with findings:",
        [name for name, reports in unchanged.items() if reports],
        flush=True,
    )
    sizes_by_attack: dict[tuple[str, str], list[tuple[str, list[str]]]] = {}
    for (attack_name, cells_name), attack in attacks().items():
        rng = random.Random(f"{SEED} {attack_name} {cells_name}")
        counts: Counter[tuple[str, Severity]] = Counter()
        for _ in range(trials):
            forgery = attack(board, rng)
            reports = reporting_families(context_of(forgery, board.benchmark, peers), families)
            counts.update(reports - unchanged.get(forgery.model_id, set()))
        shares = [share(counts, family, trials) for family in families]
        print(attack_name, cells_name, *shares, flush=True)
        size_match = SIZE.search(attack_name)
        attack_key = SIZE.sub("{}", attack_name), cells_name
        sizes_by_attack.setdefault(attack_key, []).append(
            (size_match[0] if size_match else "", shares)
        )
    return [
        f"| attack | cells | {' | '.join(families)} |",
        f"|---|---|{'---:|' * len(families)}",
        *(
            line(attack_name, cells_name, sizes)
            for (attack_name, cells_name), sizes in sizes_by_attack.items()
        ),
    ]


def line(attack_name: str, cells_name: str, sizes: list[tuple[str, list[str]]]) -> str:
    """Return the row of an attack, with its shares for each size that was tried."""
    attack_name = attack_name.format(", ".join(size for size, _ in sizes))
    columns = zip(*(shares for _, shares in sizes), strict=True)
    return (
        f"| {attack_name} | {cells_name} | {' | '.join(', '.join(column) for column in columns)} |"
    )


def share(counts: Counter[tuple[str, Severity]], family: str, trials: int) -> str:
    """Return the percentage of trials with an error or a warning, and in brackets with a note."""
    error_or_warning_count = max(
        counts[family, severity] for severity in (Severity.ERROR, Severity.WARNING)
    )
    note_count = counts[family, Severity.NOTE]
    text = f"{100 * error_or_warning_count / trials:.1f}"
    return f"{text} (note: {100 * note_count / trials:.1f})" if note_count else text


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/research/forgery.md"
    )
    parser.add_argument("--trials", type=int, default=TRIALS)
    options = parser.parse_args()
    rows = [json.loads(path.read_bytes()) for path in sorted(SUBMISSIONS.glob("*.json"))]
    board = Board(rows, shipped_benchmark())
    families = tuple(family for family in FAMILIES if family in ALL_FAMILIES)
    peers = peers_of(SUBMISSIONS.glob("*.json"))
    lines = table_lines(board, peers, families, options.trials)
    table = "\n".join(lines)
    table += (
        f"\n\nPer cent of {options.trials} trials each, on the {len(rows)} public submissions, "
        f"seed {SEED}.\n"
    )
    if options.write:
        _write_table(PAGE, table)


def _write_table(page: Path, table: str) -> None:
    before, after_begin = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(before + BEGIN + table + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
