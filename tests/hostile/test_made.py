"""Inputs that are not kept: large ones, links, pipes, folders, and paths that lead nowhere."""

import gzip
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report, files_of
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Finding
from geneb_ci.submission.scanner import (
    DEPTH_MAX,
    NUMBERS_IN_LISTS_MAX,
    VALUES_OUTSIDE_LISTS_MAX,
    scan,
)
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX
from tests.gate import gated
from tests.small import BENCHMARK, small, small_v11, small_v12

SECONDS_MAX = 10.0  # a hang, or a cost that grows with the square; speed is for `make bench-scale`
BYTES_OF_MEMORY_MAX = 150_000_000


def finding_rows(findings: tuple[Finding, ...]) -> list[tuple[str, str, int, int, str]]:
    return [(f.rule, f.pointer, f.line, f.column, f.message) for f in findings]


def check(path: Path) -> tuple[Finding, ...]:
    return Checker(RULES).check(path).findings


def members(count: int, value: str = "0") -> str:
    return ",".join(f'"k{i:06d}":{value}' for i in range(count))


def cells(count: int) -> str:
    return f'{{"schema_version":"1.0","results":{{"full":{{{members(count)}}}}}}}'


def padded(size: int) -> bytes:
    return json.dumps(small("padded")).encode().ljust(size)


TOO_LARGE = "the file has {:,} bytes; the limit is 1,000,000"
DEEP = "values are nested deeper than 16 levels"
MANY = "the document has more than 25,000 values"
FLOOD = "24,000 scores that are none"
LARGE: dict[str, tuple[Callable[[], bytes], tuple[str, str, int, int, str]]] = {
    "2,000 integers of 4,300 digits": (
        lambda: json.dumps([1]).replace("1", ",".join(["7" * 4300] * 2000)).encode(),
        ("file-too-large", "", 1, 1, TOO_LARGE.format(8_602_001)),
    ),
    "200 integers of 4,300 digits": (
        lambda: bytes(f"[{','.join(['7' * 4300] * 200)}]", "ascii"),
        ("unrepresentable-number", "/0", 1, 2, "the number has 4,300 characters"),
    ),
    "one integer of 900,000 digits": (
        lambda: b"7" * 900_000,
        ("unrepresentable-number", "", 1, 1, "the number has 900,000 characters"),
    ),
    "100,000 arrays": (
        lambda: b"[" * 100_000 + b"]" * 100_000,
        ("too-deep", "/0" * 16, 1, 17, DEEP),
    ),
    "100,000 objects": (
        lambda: b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        ("too-deep", "/a" * 16, 1, 81, DEEP),
    ),
    "700,000 keys": (
        lambda: bytes(f"{{{members(700_000)}}}", "ascii"),
        ("file-too-large", "", 1, 1, TOO_LARGE.format(8_400_001)),
    ),
    "80,000 keys": (
        lambda: bytes(f"{{{members(80_000)}}}", "ascii"),
        ("too-many-values", "", 1, 2 + 12 * 24_999 + 10, MANY),
    ),
    "300,000 empty arrays": (
        lambda: bytes(f"[{','.join(['[]'] * 300_000)}]", "ascii"),
        ("too-many-values", "", 1, 2 + 3 * 24_999, MANY),
    ),
    FLOOD: (
        lambda: cells(24_000).encode(),
        (
            "wrong-type",
            "/results/full/k000000",
            1,
            cells(1).index(":0") + 2,
            "k000000 is 0, a number",
        ),
    ),
    "20,000 scores that are NaN": (
        lambda: bytes(f"[{','.join(['NaN'] * 20_000)}]", "ascii"),
        ("non-finite-number", "/0", 1, 2, "NaN is not a JSON number"),
    ),
    "a key of 900,000 characters": (
        lambda: bytes(f'{{"{"a" * 900_000}": 1}}', "ascii"),
        ("wrong-length", "", 1, 2, f'a key has 900,000 characters: "{"a" * 76}...'),
    ),
    "900,000 control characters": (
        lambda: b'["' + b"\x01" * 900_000 + b'"]',
        ("invalid-json", "/0", 1, 3, "unescaped control character U+0001 in a string"),
    ),
    "150,000 escapes": (
        lambda: b'["' + b"\\ud800" * 150_000 + b'"]',
        ("lone-surrogate", "/0", 1, 2, "the string contains U+D800, half of a surrogate pair"),
    ),
    "a text that never ends": (
        lambda: b'["' + b"\\n" * 450_000,
        ("invalid-json", "", 1, 2, "the string that begins here is not terminated"),
    ),
    "blanks and a brace": (
        lambda: b"{" + b" " * 900_000,
        ("invalid-json", "", 1, 900_002, "expected a key, found the end of the file"),
    ),
    "one byte beyond the limit": (
        lambda: padded(SUBMISSION_BYTES_MAX + 1),
        ("file-too-large", "", 1, 1, TOO_LARGE.format(1_000_001)),
    ),
    "gzip data that would be 50 MB": (
        lambda: gzip.compress(bytes(50_000_000), 1, mtime=0),
        ("wrong-encoding", "", 1, 1, "the file is gzip data"),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory):
    """Check once before a clock runs: imports and compiled models are no input's cost."""
    path = tmp_path_factory.mktemp("warm") / "warm.json"
    path.write_text(json.dumps(small_v11("warm")), encoding="utf-8")
    check(path)


def is_counted(findings: tuple[Finding, ...]) -> None:
    """Raise AssertionError unless the last finding of a flood says how many more there are."""
    wrong_types = [f for f in findings if f.rule == "wrong-type"]
    assert len(wrong_types) == 1_000
    assert wrong_types[-1].message == (
        "23,001 more findings of wrong-type are not listed; this is the first of them"
    )
    assert (wrong_types[-1].pointer, wrong_types[-1].found) == (
        "/results/full/k000999",
        "24,000 findings",
    )


@pytest.mark.parametrize("name", gated(LARGE, *(name for name in LARGE if name != "700,000 keys")))
def test_a_large_input_is_answered_quickly(tmp_path, name):
    make, expected = LARGE[name]
    path = tmp_path / "large.json"
    path.write_bytes(make())
    started = time.process_time()  # of this process alone: the machine may be busy
    report = check(path)
    seconds = time.process_time() - started
    assert expected in finding_rows(report)
    assert seconds < SECONDS_MAX
    if name == FLOOD:
        is_counted(report)


@pytest.mark.nightly  # tracing takes seconds; in the gate, the system is asked below
@pytest.mark.parametrize("name", LARGE)
def test_a_large_input_is_answered_in_little_memory(tmp_path, name):
    path = tmp_path / "large.json"
    path.write_bytes(LARGE[name][0]())
    tracemalloc.start()
    report = Report()
    report.add(Checker(RULES).check(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BYTES_OF_MEMORY_MAX


def test_a_file_at_the_limit_is_read(tmp_path):
    path = tmp_path / "padded.json"
    path.write_bytes(padded(SUBMISSION_BYTES_MAX))
    assert "file-too-large" not in {f.rule for f in check(path)}
    assert Checker(RULES).check(path).submission is not None


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_the_deepest_level_that_is_read(opening, closing):
    assert scan(opening * DEPTH_MAX + "1" + closing * DEPTH_MAX).faults == []
    beyond = DEPTH_MAX + 1
    assert [f.rule for f in scan(opening * beyond + "1" + closing * beyond).faults] == ["too-deep"]


def test_the_largest_number_of_values_that_is_read():
    assert scan(f"[{','.join(['null'] * (VALUES_OUTSIDE_LISTS_MAX - 1))}]").faults == []
    faults = scan(f"[{','.join(['null'] * VALUES_OUTSIDE_LISTS_MAX)}]").faults
    assert [f.rule for f in faults] == ["too-many-values"]


def test_numbers_of_lists_are_counted_apart(monkeypatch):
    """Those of objects are values like others. A smaller limit is counted in less time."""
    assert NUMBERS_IN_LISTS_MAX == 150_000
    monkeypatch.setattr(
        "geneb_ci.submission.scanner.NUMBERS_IN_LISTS_MAX", VALUES_OUTSIDE_LISTS_MAX + 2_000
    )
    assert scan(f"[{','.join(['0'] * (VALUES_OUTSIDE_LISTS_MAX + 2_000))}]").faults == []
    (fault,) = scan(f"[{','.join(['0'] * (VALUES_OUTSIDE_LISTS_MAX + 2_001))}]").faults
    assert fault.message == "the document has more than 27,000 numbers in lists"
    members = ",".join(f'"{number}":0' for number in range(VALUES_OUTSIDE_LISTS_MAX))
    assert [f.rule for f in scan(f"{{{members}}}").faults] == ["too-many-values"]


@pytest.mark.parametrize(
    "matrices", [1, pytest.param(NUMBERS_IN_LISTS_MAX // 10_000 - 1, marks=pytest.mark.nightly)]
)
def test_invalid_matrices_are_read_within_the_limits_of_memory(tmp_path, matrices):
    """All numbers of the matrices are wrong: by night, of as many as a file may have."""
    document = small_v12("negative")
    cell = document["evidence"]["full"][BENCHMARK.task_ids[0]]
    cell["confusion"] = [[[-1] * 100] * 100] * matrices
    path = tmp_path / "negative.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    tracemalloc.start()
    report = check(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BYTES_OF_MEMORY_MAX
    (fault,) = (f for f in report if f.rule == "score-out-of-range")
    assert fault.pointer.endswith("/confusion/0/0/0"), "the first stands for all"


LINK = "the file is a symbolic link"
OTHER = "this is not a regular file"


def test_a_file_that_is_none_is_a_finding_and_hides_no_other(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(small("good")), encoding="utf-8")
    (tmp_path / "broken-link.json").symlink_to("nowhere.json")
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "link-to-good.json").symlink_to("good.json")
    (tmp_path / "link-to-passwd.json").symlink_to("/etc/passwd")
    (tmp_path / "link-to-zero.json").symlink_to("/dev/zero")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "folder.json" / "inner.json").touch()
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / ".hidden.json").touch()
    (tmp_path / "notes.txt").touch()
    findings_by_name = {}
    for result in Checker(RULES).run(files_of([tmp_path])):
        assert isinstance(result, FileResult)
        name = Path(result.document.name).name
        findings_by_name[name] = [f.message for f in result.findings if f.rule == "irregular-file"]
    assert findings_by_name == {
        "broken-link.json": [LINK],
        "folder.json": [OTHER],
        "good.json": [],
        "link-to-good.json": [LINK],
        "link-to-passwd.json": [LINK],
        "link-to-zero.json": [LINK],
        "loop.json": [LINK],
        "pipe.json": [OTHER],
    }


def test_a_device_is_a_finding():
    assert finding_rows(check(Path("/dev/null"))) == [("irregular-file", "", 1, 1, OTHER)]


NOWHERE = {
    "absent.json": "no such file",
    "a" * 300: "cannot be read: File name too long",
    "file.txt/x.json": "cannot be read: Not a directory",
    "loop/x.json": "cannot be read: Too many levels of symbolic links",
    "*.jsn": "no file matches",
    "x\0y.json": "no such file",
    "empty": "the folder contains no *.json",
}


def test_paths_that_lead_nowhere_are_all_named_in_one_line(tmp_path):
    (tmp_path / "file.txt").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingChecked) as caught:
        files_of([tmp_path / name for name in NOWHERE])
    expected = "; ".join(f"{tmp_path / name}: {why}" for name, why in NOWHERE.items())
    assert caught.value.message == expected
    assert caught.value.fix == "pass a submission, or a folder with *.json files"


def test_a_file_that_cannot_be_opened_is_told_and_hides_no_other(tmp_path):
    good, gone = tmp_path / "good.json", tmp_path / "gone.json"
    good.write_text(json.dumps(small("good")), encoding="utf-8")
    first, second = Checker(RULES).run([gone, good])
    assert isinstance(first, NothingChecked)
    assert first.message == f"{gone}: cannot be read: No such file or directory"
    assert isinstance(second, FileResult)


def test_a_file_without_the_ending_is_checked_when_it_is_named(tmp_path):
    path = tmp_path / "submission.txt"
    path.write_text("[]", encoding="utf-8")
    assert finding_rows(check(path)) == [("not-an-object", "", 1, 1, "the document is an array")]


def test_names_of_files_may_be_bytes_of_any_kind(tmp_path):
    name = os.fsdecode(b"caf\xe9 \xe2\x80\xae\n.json")
    (tmp_path / name).write_text("[]", encoding="utf-8")
    (result,) = Checker(RULES).run(files_of([tmp_path]))
    assert isinstance(result, FileResult)
    assert [f.rule for f in result.findings] == ["not-an-object"]


def peak() -> str:
    """Return code that reads the peak of a process, in kilobytes, which no parent has a part in."""
    if sys.platform == "linux":
        return "int(re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1])"
    return "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024"


@pytest.mark.parametrize(
    "shape",
    ["flood", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("deep", "sound"))],
)
def test_memory_of_a_process_stays_small(tmp_path, shape):
    """Ask the system, which also counts what is not Python's."""
    path = tmp_path / f"{shape}.json"
    text = {"flood": cells(24_000), "deep": "[" * 900_000, "sound": json.dumps(small("sound"))}
    path.write_text(text[shape], encoding="utf-8")
    code = (
        "import re, resource, sys\n"
        "from pathlib import Path\n"
        "from geneb_ci.check.registry import RULES\n"
        "from geneb_ci.check.runner import Checker\n"
        f"before = {peak()}\n"
        "Checker(RULES).check(Path(sys.argv[1]))\n"
        f"print({peak()} - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) * 1024 < BYTES_OF_MEMORY_MAX
