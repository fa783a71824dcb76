"""Each format as a whole, byte for byte; `pytest --update-golden` writes the files anew."""

from pathlib import Path

import pytest

from geneb_ci import __version__
from geneb_ci.render.formats import FORMATS, render
from tests.render import examples

GOLDEN = Path(__file__).parent / "golden"
FILES = {name: f"{name}.{member.suffix}" for name, member in FORMATS.items()}
REPORTS = {
    "mixed": examples.mixed,
    "clean": examples.clean,
    "empty": examples.empty,
    "alone": examples.alone,
}


def agree(path: Path, output: str, *, update: bool) -> None:
    output = output.replace(f'"version": "{__version__}"', '"version": "VERSION"')
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output, encoding="utf-8", newline="\n")
    assert output == path.read_bytes().decode("utf-8")


@pytest.mark.parametrize("example", REPORTS)
@pytest.mark.parametrize("name", FORMATS)
def test_the_whole_output(name, example, update_golden):
    output = render(name, REPORTS[example]())
    agree(GOLDEN / example / FILES[name], output, update=update_golden)


@pytest.mark.parametrize("example", REPORTS)
def test_colours_are_written_as_well(example, update_golden):
    output = render("text", REPORTS[example](), color=True).replace("\x1b", "<ESC>")
    agree(GOLDEN / example / "text-color.txt", output, update=update_golden)


def test_a_narrow_terminal(update_golden):
    output = render("text", examples.mixed(), width=60)
    agree(GOLDEN / "mixed" / "text-60.txt", output, update=update_golden)


def test_no_golden_file_is_left_over():
    expected = {f"{example}/{file}" for example in REPORTS for file in FILES.values()}
    expected |= {f"{example}/text-color.txt" for example in REPORTS} | {"mixed/text-60.txt"}
    assert {str(p.relative_to(GOLDEN)) for p in GOLDEN.rglob("*.*")} == expected


@pytest.mark.parametrize("name", FORMATS)
def test_the_order_of_findings_makes_no_difference(name):
    report = examples.mixed()
    expected = render(name, report)
    report.findings.reverse()
    assert render(name, report) == expected


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"])
def test_the_environment_makes_no_difference(variable, monkeypatch):
    expected = render("text", examples.mixed()), render("text", examples.mixed(), color=True)
    monkeypatch.setenv(variable, "1")
    assert (render("text", examples.mixed()), render("text", examples.mixed(), color=True)) == (
        expected
    )
