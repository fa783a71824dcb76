"""Shows how findings differ from the expectations, and writes the expectations you name.

    .venv/bin/python -m tests.rules.update                   show every difference, write nothing
    .venv/bin/python -m tests.rules.update missing-task ...  write what these rules are to find
    .venv/bin/python -m tests.rules.update --all             write all of them

Read the difference before you commit it: it is what contributors will read. The exit status is 0
when findings and expectations agree afterwards, 1 when some still differ, 2 for a wrong argument.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Collection
from pathlib import Path

from geneb_ci.check.registry import BY_ID
from tests.rules.expectations import FOLDER, NOTHING, Expectation, Table, computed, read, write
from tests.rules.fixtures import lacking


def rule_of(case: str) -> str:
    """Return the rule of a case."""
    return case.partition("/")[0]


def differences(old: Table, new: Table) -> dict[tuple[str, str], list[str]]:
    """Return the lines that differ for each family and case that differ."""
    cases = {
        (family, case): None for table in (new, old) for family in table for case in table[family]
    }
    lines_by_case = {}
    for family, case in cases:
        before, after = old.get(family, {}).get(case), new.get(family, {}).get(case)
        if before != after:
            lines_by_case[family, case] = _lines(before, after)
    return lines_by_case


def _lines(before: Expectation | None, after: Expectation | None) -> list[str]:
    what = "new case" if before is None else "case removed" if after is None else ""
    old, new = before or NOTHING, after or NOTHING
    if not what and old.input != new.input:
        what = "input changed"
    was, now = ([json.dumps(row) for row in side.findings] for side in (old, new))
    diff = list(difflib.unified_diff(was, now, n=0, lineterm=""))[2:]
    lines = [line for line in diff if not line.startswith("@@")]
    return [f"  {what}"] * bool(what) + [f"  {line}" for line in lines]


def shown(lines_by_case: dict[tuple[str, str], list[str]]) -> str:
    """Return the differences as text; cases that differ the same way stand together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for (_, case), lines in lines_by_case.items():
        groups.setdefault(tuple(lines), []).append(case)
    return "".join(
        f"{', '.join(cases)}\n" + "".join(f"{line}\n" for line in lines)
        for lines, cases in groups.items()
    )


def merged(old: Table, new: Table, rules: Collection[str]) -> Table:
    """Return the old expectations, with the new ones of these rules in their place."""
    result: Table = {}
    for family in {**new, **old}:
        was, now = old.get(family, {}), new.get(family, {})
        result[family] = {
            case: (now if rule_of(case) in rules else was)[case]
            for case in {**now, **was}
            if case in (now if rule_of(case) in rules else was)
        }
    return result


def main(arguments: list[str], new: Table | None = None, folder: Path = FOLDER) -> int:
    """Show the differences, and write what is asked for; return the exit status."""
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m tests.rules.update",
        description="update the expectations of rules",
    )
    parser.add_argument("rules", nargs="*", help="rules whose expectations to write")
    parser.add_argument("--all", action="store_true", help="write the expectations of every rule")
    options = parser.parse_args(arguments)
    new = computed() if new is None else new
    old = read(folder)
    known = {rule_of(case) for table in (old, new) for cases in table.values() for case in cases}
    for name in options.rules:
        if name not in known:
            parser.error(_unknown(name, known))
    rules = known if options.all else set(options.rules)
    every = differences(old, new)
    chosen = {key: lines for key, lines in every.items() if rule_of(key[1]) in rules}
    others = {key: lines for key, lines in every.items() if key not in chosen}
    if chosen:
        write(merged(old, new, rules), folder)
        sys.stdout.write(f"{shown(chosen)}written: {_count(chosen)}\n")
    if others:
        names = " ".join(dict.fromkeys(rule_of(case) for _, case in others))
        sys.stdout.write(
            f"{shown(others)}differ, and were not written: {_count(others)}\n"
            f"if this is what you meant: .venv/bin/python -m tests.rules.update {names}\n"
            "or, for every rule: .venv/bin/python -m tests.rules.update --all\n"
        )
    if not every:
        sys.stdout.write("every expectation agrees with what is found\n")
    return 1 if others else 0


def _unknown(name: str, known: Collection[str]) -> str:
    if name in BY_ID:
        return lacking(BY_ID[name])
    near = difflib.get_close_matches(name, {*known, *BY_ID}, 1)
    return f"{name} is not a rule" + (f"; did you mean {near[0]}?" if near else "")


def _count(lines_by_case: dict[tuple[str, str], list[str]]) -> str:
    count = len(lines_by_case)
    return f"{count} expectation{'s' * (count != 1)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
