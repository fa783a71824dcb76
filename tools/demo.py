"""`make demo`: checks the public submissions, rebuilds the board, audits two rows.

python -m tools.demo
"""

import json
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.demo_audit import audits, print_and_run

ROOT = Path(__file__).resolve().parent.parent
ROWS_MAX = 10  # most rows of the board that are printed


def show_board(path: Path) -> None:
    """Print the first rows of a board by macro MCC in the full regime."""
    rows = json.loads(path.read_bytes())["data"]["full"]
    rows.sort(key=lambda row: -row["macro_MCC"])
    table = Table(
        title=f"macro MCC, full regime: {ROWS_MAX} of {len(rows)} models", title_justify="left"
    )
    table.add_column("#", justify="right")
    table.add_column("model")
    table.add_column("parameters", justify="right")
    table.add_column("macro MCC", justify="right")
    table.add_column("authorship and evidence")
    for rank, row in enumerate(rows[:ROWS_MAX], 1):
        table.add_row(
            str(rank),
            row["disp"],
            f"{row['params']:,}",
            f"{row['macro_MCC']:.3f}",
            f"{row['authorship']}, {row['evidence']}",
        )
    Console().print(table)


def main() -> None:
    """Run the demonstration in a temporary folder, without changing the checkout."""
    with tempfile.TemporaryDirectory(prefix="geneb-ci-demo-") as folder:
        count = len(list((ROOT / "submissions").glob("*.json")))
        print(f"1. The {count} public submissions pass every check.")
        print_and_run("check", "submissions", folder=ROOT)
        print("\n2. A copy with three mistakes fails: each is reported with its place and its fix.")
        broken = Path(folder) / "my-model.json"
        text = (ROOT / "submissions" / "splicebert-1024nt.json").read_text(encoding="utf-8")
        text = text.replace('"Acc":0.', '"Acc":1.', 1).replace('"F1"', '"f1"', 1)
        broken.write_text(text.replace('"self-reported"', '"verified"'), encoding="utf-8")
        print_and_run("check", str(broken), folder=ROOT, expected=11)
        print("\n3. The board is rebuilt from nothing but the submissions.")
        print_and_run("build", "--output", folder, folder=ROOT)
        print()
        show_board(Path(folder) / "leaderboard.json")
        audited = audits(Path(folder))
    rows = "an honest and a forged row audited" if audited else "no row audited"
    print(f"\nDone: {count} submissions checked, the board rebuilt, {rows}.")
    print("To see the board: .venv/bin/geneb-ci serve, then open http://127.0.0.1:8000/.")


if __name__ == "__main__":
    main()
