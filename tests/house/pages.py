"""The pages that readers see, and what is wrong with one: each check returns lines."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from geneb_ci.cli.main import cli
from reference_harness.cli.main import cli as harness
from tests.house.tracked import ours
from tests.paths import ROOT

INDEX = Path("docs/index.md")
GENERATED = frozenset({"leaderboard/audits/"})
"""What commands write and a fresh checkout may lack."""
NOT_OURS = re.compile(r"^(submissions/|tests/.*golden/)")
"""What contributors wrote and what a program printed."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
PLACE = re.compile(
    r"`((?:geneb_ci|reference_harness|tests|tools|schemas|leaderboard|requirements|docs|\.github)"
    r"/[\w./-]*)"
)
TESTS = re.compile(r"`(tests/[\w/]+\.py)`:\s((?:`test_\w+`(?:,\s)?)+)")
"""A file of tests, and the names of some of them."""
PROGRAMS: dict[str, click.Command] = {"geneb-ci": cli, "geneb-harness": harness}
HANDED_OVER = (
    (re.compile(r"^geneb-ci audit (?=FILE|\S+\.json)"), "geneb-ci audit file "),
    (re.compile(r"^geneb-ci data (?!push\b)"), "geneb-harness data "),
    (re.compile(r"^geneb-ci extractor\b"), "geneb-harness extractors"),
    (re.compile(r"^geneb-ci (?=(?:probe|run)\b)"), "geneb-harness "),
)
"""Commands of the one program that become commands of the other."""
HELP = ["-h", "--help"]
END = {"|", "&&", ">>", ">", "#", ";"}


def pages() -> list[str]:
    """Name the pages: Markdown of ours, and the forms on GitHub."""
    page_paths = [
        path.as_posix()
        for path in ours()
        if path.suffix == ".md" or path.parts[:2] == (".github", "ISSUE_TEMPLATE")
    ]
    return [name for name in page_paths if not NOT_OURS.match(name)]


def without_blocks(text: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def wrong_links(page: str, text: str) -> list[str]:
    """Name the links of a page to files or headings of the repository that do not exist."""
    results = []
    for target in LINK.findall(re.sub(r"`[^`]*`", "", without_blocks(text))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file
        if file and not path.exists():
            if path.resolve().relative_to(ROOT).as_posix() not in GENERATED:
                results.append(f"{page}: {target}: there is no such file")
        elif anchor:
            there = path.read_text(encoding="utf-8") if file else text
            if anchor not in anchors(there):
                results.append(f"{page}: {target}: no heading makes this anchor")
    return results


def wrong_places(page: str, text: str) -> list[str]:
    """Name the files and folders that a page names in code and that do not exist."""
    results = []
    for match in PLACE.finditer(text):
        anchor = match[1]
        if text[match.end()] in "`:" and anchor not in GENERATED and not (ROOT / anchor).exists():
            results.append(f"{page}: {anchor}: there is no such file")
    return results


def wrong_tests(page: str, text: str) -> list[str]:
    """Name the tests that a page names behind their file and that the file does not define."""
    wrong = []
    for file, names in TESTS.findall(text):
        path = ROOT / file
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        missing = [name for name in re.findall(r"\w+", names) if f"def {name}(" not in source]
        wrong += [f"{page}: {file}: there is no {name}" for name in missing]
    return wrong


def commands(text: str) -> Iterator[str]:
    """Return the command lines of a page: after a prompt, in a block, or in a code span."""
    is_block = False
    for line in text.replace("\\\n", " ").splitlines():
        is_block ^= line.lstrip().startswith("```")
        yield from re.findall(r"`(geneb-(?:ci|harness) [^`]+)`", line)
        start = r"\s*(?:\$ )?" if is_block else r"(?: {4,}|\s*\$ )"
        if prompt := re.match(rf"{start}(?:[\w.]+/)*(geneb-(?:ci|harness) .+)", line):
            yield prompt[1]


def wrong_commands(page: str, text: str) -> list[str]:
    """Name the commands and options of a page that the programs do not have."""
    return [f"{page}: {line}: {wrong}" for line in commands(text) for wrong in _wrong_command(line)]


def _wrong_command(line: str) -> Iterator[str]:
    for pattern, harnessed in HANDED_OVER:
        line = pattern.sub(harnessed, line)
    words = shlex.split(line.replace("\\|", "|"), comments=True)
    program, *rest = words[: next((at for at, word in enumerate(words) if word in END), None)]
    command = PROGRAMS[program]
    while isinstance(command, click.Group) and rest and re.fullmatch(r"[a-z]+(-[a-z]+)*", rest[0]):
        step = command.get_command(click.Context(command), rest[0])
        if step is None:
            yield f"there is no command {rest[0]}"
            return
        command, rest = step, rest[1:]
    # click keeps the option of help that it makes now, also for the man page of the same process.
    context = click.Context(command, help_option_names=HELP)
    known = {
        name
        for parameter in command.get_params(context)
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in rest:
        if word.startswith("-") and word != "-" and word.partition("=")[0] not in known:
            yield f"there is no option {word}"


def unlisted(index: str) -> list[str]:
    """Name the pages of docs/ that the index does not link."""
    linked = {target.partition("#")[0] for target in LINK.findall(index)}
    docs = ROOT / INDEX.parent
    names = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    return [name for name in names if name not in {*linked, INDEX.name}]
