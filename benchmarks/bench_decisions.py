"""Measure how often decisions hold; `--write` puts the table into docs/research/uncertainty.md.

python -m benchmarks.bench_decisions --write
"""

import argparse

from benchmarks.simulate_decisions import DecisionShares, decision_shares, world_of
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries
from tests.paths import ROOT

SETS = 300
SEED = 20_261_122
TRUTHS = (
    ("full, public recalls", False, False),
    ("full, all 41 models equal", True, False),
    ("10shot, public recalls, five fits with r = 0.5", False, True),
    ("10shot, all equal, five fits with r = 0.5", True, True),
)
"""Name of a case, whether all models have one recall, and whether scores are means of five fits."""
PAGE = ROOT / "docs/research/uncertainty.md"
BEGIN, END = "<!-- bench -->\n", "<!-- /bench -->"


def coverage(sets: int) -> str:
    """Return the table of the shares of test sets in which decisions are right."""
    rows = [entry.submission for entry in entries()]
    lines = [
        "| truth | no wrong pair | best could be best | loss bound | within margin | interval |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, is_equal, is_few_shot in TRUTHS:
        regime, sizes_max = ("10shot", 400) if is_few_shot else ("full", 1000)
        world = world_of(
            rows, shipped_benchmark(), regime=regime, is_equal=is_equal, sizes_max=sizes_max
        )
        shares: DecisionShares = decision_shares(world, sets, SEED, is_few_shot=is_few_shot)
        columns = [
            f"{100 * share_by_score.mean():.1f} / {100 * share_by_score.min():.1f}"
            for share_by_score in (shares.pairs, shares.best, shares.bounds, shares.within)
        ]
        lines.append(f"| {name} | {' | '.join(columns)} | {100 * shares.interval:.1f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + (
        f"\n\nPer cent of {sets} test sets, mean over scores / worst score; sizes at most 1,000 "
        f"(few-shot 400), two classes, seed {SEED}.\n"
    )


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    parser.add_argument("--sets", type=int, default=SETS)
    options = parser.parse_args()
    table = coverage(options.sets)
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
