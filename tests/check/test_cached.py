"""A check that is read from the cache says what a computed one says, byte for byte."""

import contextlib
import json
import os
import pwd
import random
import re
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geneb_ci import api
from geneb_ci.check import cached
from geneb_ci.check.cached import CachedChecker, code_digest
from geneb_ci.check.registry import RULES, chosen_rule_ids
from geneb_ci.check.report import FileFindings, FileResult, Report, file_findings
from geneb_ci.check.runner import Checker
from geneb_ci.common import cache as caches
from geneb_ci.common import shipped as shipping
from geneb_ci.common.cache import Cache
from geneb_ci.common.config import cache_folder, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked, UsageProblem
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.render.formats import render
from tests.examples import examples
from tests.paths import ROOT, SUBMISSIONS

ROWS = tuple(f"{SUBMISSIONS}/{path.name}" for path in sorted(SUBMISSIONS.glob("*.json"))[:10])
RULE_IDS = chosen_rule_ids((), ())


def repository(root: Path, rows: tuple[str, ...] = ROWS) -> list[Path]:
    """Write a small repository of public rows and return its rows."""
    for folder in ("submissions/cards", "submissions/extractors", "schemas", "leaderboard/policy"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / "schemas/benchmark.json", root / "schemas")
    shutil.copy(ROOT / "leaderboard/policy/official.json", root / "leaderboard/policy")
    (root / "leaderboard/policy/models").mkdir()
    for row in map(Path, rows):
        shutil.copy(row, root / "submissions")
        card = SUBMISSIONS / f"cards/{row.stem}.md"
        if card.is_file():
            shutil.copy(card, root / "submissions/cards")
    return sorted((root / "submissions").glob("*.json"))


@pytest.fixture(autouse=True)
def _outside_of_github(monkeypatch):
    """Keep results of small folders, too."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr(cached, "CACHED_FILES_MIN", 1)


@pytest.fixture
def computed(monkeypatch):
    """Return the names of the files that were checked by the rules."""
    names: list[str] = []
    check = Checker.check

    def counted(self: Checker, path: Path) -> FileResult:
        names.append(path.name)
        return check(self, path)

    monkeypatch.setattr(Checker, "check", counted)
    return names


def shown(results: Any, rules: int) -> str:
    """Return all that a report says, in the format with the most."""
    report = Report(rules=rules)
    fault = ""
    try:
        for result in results:
            if isinstance(result, NothingChecked):
                report.unreadable.append(result)
            else:
                report.add_findings(
                    file_findings(result) if isinstance(result, FileResult) else result
                )
    except BadConfiguration as error:
        fault = f"{error.message} {error.fix}"
    frames = sorted((finding.sort_key(), frame) for finding, frame in report.excerpts.items())
    skipped = {need: dict(rules) for need, rules in report.skipped.items()}
    return f"{render('json', report)}{frames}{skipped}{report.files}{fault}"


def cold(files: list[Path], rules: tuple[str, ...] = RULE_IDS) -> str:
    """Return what a check without a cache says."""
    find_layout.cache_clear()
    chosen_rules = tuple(rule for rule in RULES if rule.id in rules)
    return shown(Checker(chosen_rules, find=find_layout).run(files), len(rules))


def warm(
    files: list[Path], folder: Path | None, jobs: int = 1, rules: tuple[str, ...] = RULE_IDS
) -> str:
    """Return what a check with a cache in a folder says."""
    find_layout.cache_clear()
    checker = CachedChecker(rules, jobs=jobs)
    checker.cache = Cache(folder)
    return shown(checker.run(files), len(rules))


def edited(root: Path, drawn: random.Random) -> None:  # noqa: C901, PLR0912 (a case for each thing)
    """Change one thing that a result may follow from."""
    rows = sorted((root / "submissions").glob("*.json"))
    row = drawn.choice(rows)
    text = row.read_text(encoding="utf-8")
    try:
        document = json.loads(text)
    except ValueError:
        document = {}
    match drawn.randrange(12):
        case 0:
            document.get("results", {}).get("full", {}).popitem()
        case 1:
            cells = document["results"]["full"]
            cells[drawn.choice(sorted(cells))]["MCC"] = drawn.choice([0.5, 2, "x", 0.0])
        case 2:
            document["meta"]["display"] = json.loads(drawn.choice(rows).read_bytes())["meta"][
                "display"
            ]
        case 3:
            document["results"] = json.loads(drawn.choice(rows).read_bytes())["results"]
        case 4:
            document["model_id"] = document.get("model_id", "").swapcase()
        case 5:
            row.with_name(f"{drawn.choice('abc')}.json").write_text(text, encoding="utf-8")
        case 6:
            card = row.parent / f"cards/{row.stem}.md"
            card.write_text(drawn.choice(["", "# x\n", "\n- **Model:** TODO\n"]), encoding="utf-8")
        case 7:
            policy = root / "leaderboard/policy/official.json"
            value = json.loads(policy.read_bytes())
            value["files"][row.stem] = drawn.choice(["0" * 64, "1" * 64])
            policy.write_text(json.dumps(value), encoding="utf-8")
        case 8:
            entry = root / f"leaderboard/policy/models/{row.stem}.toml"
            params = drawn.choice([1, 2])
            entry.write_text(f'schema_version = "1.0"\nparams = {params}\n', encoding="utf-8")
        case 9:
            benchmark = root / "schemas/benchmark.json"
            value = json.loads(benchmark.read_bytes())
            value["tasks"][0]["label"] = drawn.choice("ab")
            benchmark.write_text(json.dumps(value), encoding="utf-8")
        case 10:
            row.write_text(f'{text.rstrip()[:-1]},"a":1,"a":NaN}}', encoding="utf-8")
            return
        case _:
            if len(rows) > 9:
                row.unlink()
            return
    if row.exists() and document:
        row.write_text(json.dumps(document), encoding="utf-8")


def damaged(folder: Path, drawn: random.Random) -> None:
    """Flip, cut, swap or remove files of the cache."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    contents = [path.read_bytes() for path in files]
    for path in files:
        raw = bytearray(path.read_bytes())
        match drawn.randrange(6):
            case 0:
                raw[drawn.randrange(len(raw))] ^= 1 << drawn.randrange(8)
                path.write_bytes(raw)
            case 1:
                path.write_bytes(raw[: drawn.randrange(len(raw))])
            case 2:
                path.write_bytes(drawn.choice(contents))
            case 3:
                path.unlink()


@pytest.mark.nightly  # in the gate, one changed byte of each kind of file
@settings(max_examples=examples(7), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 4), harm=st.booleans())
def test_a_warm_check_is_a_cold_one(tmp_path_factory, seed, steps, harm):
    drawn = random.Random(seed)
    root = tmp_path_factory.mktemp("repository")
    repository(root)
    for _ in range(steps):
        files = sorted((root / "submissions").glob("*.json"))
        some = drawn.choice([files, files[:1], files[2:5]])
        assert warm(some, root / "cache") == cold(some)
        if harm:
            damaged(root / "cache", drawn)
        edited(root, drawn)
    files = sorted((root / "submissions").glob("*.json"))
    assert warm(files, root / "cache") == cold(files)
    assert warm(files, root / "cache") == cold(files)


def test_an_unchanged_check_computes_nothing(tmp_path, computed):
    files, folder = repository(tmp_path, ROWS[:3]), tmp_path / "cache"
    first = warm(files, folder)
    assert computed == [path.name for path in files]
    computed.clear()
    assert warm(files, folder) == first
    assert computed == []


CHANGES = {
    "a row": "submissions/BioFM-265M.json",
    "another row": "submissions/new.json",
    "a card": "submissions/cards/BioFM-265M.md",
    "an extractor": "submissions/extractors/mine.py",
    "the benchmark": "schemas/benchmark.json",
    "an entry of the registry": "leaderboard/policy/models/BioFM-265M.toml",
    "settings": "pyproject.toml",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_byte_is_another_check(tmp_path, computed, what):
    files, folder = repository(tmp_path, ROWS[:3]), tmp_path / "cache"
    warm(files, folder)
    computed.clear()
    path = tmp_path / CHANGES[what]
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    path.write_text(f"{text}\n", encoding="utf-8")
    assert warm(files, folder) == cold(files)
    assert len(computed) >= len(files)


def card(root: Path) -> Path:
    return root / f"submissions/cards/{Path(ROWS[0]).stem}.md"


def entry(root: Path) -> Path:
    return root / f"leaderboard/policy/models/{Path(ROWS[0]).stem}.toml"


def moved_entries(root: Path) -> None:
    (root / "leaderboard/policy/models").rename(root / "entries")
    (root / "leaderboard/policy/models").symlink_to(root / "entries")


def linked_card(root: Path) -> None:
    (root / "submissions/cards/a.md").write_text("# a\n", encoding="utf-8")
    (root / "submissions/cards/b.md").symlink_to("a.md")


Step = Callable[[Path], object]
UNUSUAL: dict[str, tuple[Step, Step]] = {
    "a folder as card": (id, lambda root: card(root).mkdir()),
    "a broken link as card": (id, lambda root: card(root).symlink_to("nowhere")),
    "a pipe as card": (id, lambda root: os.mkfifo(card(root))),
    "another name of a link": (
        linked_card, lambda root: (root / "submissions/cards/b.md").rename(card(root))
    ),
    "a folder as entry": (id, lambda root: entry(root).mkdir()),
    "a broken link as entry": (id, lambda root: entry(root).symlink_to("nowhere")),
    "an entry of a linked folder": (
        moved_entries, lambda root: entry(root).write_text('schema_version = "1.0"\nparams = 1\n')
    ),
}  # fmt: skip
"""Name to what is done before the first check, and what before the second."""


@pytest.mark.parametrize("what", UNUSUAL)
def test_what_is_no_plain_file_is_another_check(tmp_path, what):
    files, folder = repository(tmp_path, ROWS[:3]), tmp_path / "cache"
    before, after = UNUSUAL[what]
    before(tmp_path)
    former = warm(files, folder)
    after(tmp_path)
    expected = cold(files)
    assert expected != former
    assert warm(files, folder) == expected


def test_shipped_policy_is_part_of_a_check_without_one(tmp_path, monkeypatch):
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "leaderboard/policy", policy)
    monkeypatch.setitem(shipping._FOLDERS_BY_KIND, "policy", (policy,))
    (tmp_path / "rows").mkdir()
    files = [Path(shutil.copy(row, tmp_path / "rows")) for row in map(Path, ROWS[:2])]
    former = warm(files, tmp_path / "cache")
    entry = policy / f"models/{files[0].stem}.toml"
    text = entry.read_text(encoding="utf-8")
    entry.write_text(re.sub("(?m)^params = .*", "params = 7", text), encoding="utf-8")
    expected = cold(files)
    assert expected != former
    assert warm(files, tmp_path / "cache") == expected


def test_other_rules_have_results_of_their_own(tmp_path):
    files, folder = repository(tmp_path, ROWS[:3]), tmp_path / "cache"
    for names in ((), ("coverage",), ("plausibility", "near-copy")):
        rules = chosen_rule_ids(names, ())
        assert warm(files, folder, rules=rules) == cold(files, rules)


def test_other_code_or_another_package_computes_anew(tmp_path, monkeypatch):
    digests = {code_digest()}
    (tmp_path / "site/numpy-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    digests.add(code_digest())
    package = tmp_path / "package"
    shutil.copytree(cached._PACKAGE_FOLDER, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cached, "_PACKAGE_FOLDER", package)
    digests.add(code_digest())
    with (package / "check/claims.py").open("a", encoding="utf-8") as stream:
        stream.write("\n")
    digests.add(code_digest())
    schemas = tmp_path / "schemas"
    shutil.copytree(ROOT / "schemas", schemas)
    monkeypatch.setattr(cached, "shipped", lambda _, name: schemas / name)
    digests.add(code_digest())
    for name in ("known.json", "shipped-fit.json", "benchmark.json", "submission-1.1.schema.json"):
        with (schemas / name).open("ab") as raw:
            raw.write(b"\n")
        digests.add(code_digest())
    assert len(digests) == 9


def test_processes_say_what_one_says(tmp_path):
    files = repository(tmp_path)
    files[0].write_bytes(b"{")
    files[1].unlink()
    files[1].mkdir()
    assert warm(files, None, jobs=2) == cold(files)


def test_processes_report_settings_that_cannot_be_used(tmp_path):
    files = repository(tmp_path, ROWS[:3])
    other = repository(tmp_path / "other", ROWS[:2])
    (tmp_path / "other/schemas/benchmark.json").write_text("{}", encoding="utf-8")
    expected = cold([*files, *other])
    assert "benchmark.json" in expected
    assert warm([*files, *other], tmp_path / "cache", jobs=2) == expected
    assert warm([*files, *other], tmp_path / "cache") == expected


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_report_names_the_benchmark_although_other_settings_cannot_be_used(tmp_path, jobs):
    files, other = (repository(root, ROWS[:2]) for root in (tmp_path, tmp_path / "other"))
    (tmp_path / "other/schemas/benchmark.json").write_text("{}", encoding="utf-8")
    report = api.check(*files, *other, jobs=jobs)
    assert (len(report.files), len(report.unreadable)) == (len(files), 1)
    assert list(report.benchmarks) == ["GENEB"]


def test_a_process_that_is_killed_is_done_without(tmp_path, monkeypatch):
    files, here, check = repository(tmp_path, ROWS[:4]), os.getpid(), Checker.check

    def killed(self: Checker, path: Path) -> FileResult:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return check(self, path)

    monkeypatch.setattr(Checker, "check", killed)
    assert warm(files, None, jobs=2) == cold(files)


def test_a_crash_of_a_rule_is_not_kept(tmp_path, monkeypatch):
    """The next run, which has the memory that was missing, says the rest."""
    files, folder = repository(tmp_path, ROWS[:2]), tmp_path / "cache"
    crashed = [FileFindings(str(path), "", (CRASH,), {}, ()) for path in files]
    with monkeypatch.context() as patch:
        patch.setattr("geneb_ci.check.runner.findings_by_file", lambda *_: iter(crashed))
        assert "check-crashed" in warm(files, folder)
    assert warm(files, folder) == cold(files)


CRASH = Finding("check-crashed", Severity.ERROR, "x", "x", "", 1, 1, "x", "a verdict", "x")


def test_a_file_that_cannot_be_read_is_not_kept(tmp_path):
    files, folder = repository(tmp_path, ROWS[:2]), tmp_path / "cache"
    raw = files[0].read_bytes()
    files[0].unlink()
    files[0].mkdir()
    assert warm(files, folder) == cold(files)
    files[0].rmdir()
    files[0].write_bytes(raw)
    assert warm(files, folder) == cold(files)


def test_a_row_that_changes_while_it_is_checked_is_not_kept(tmp_path, monkeypatch):
    files, folder = repository(tmp_path, ROWS[:2]), tmp_path / "cache"
    check, former = Checker.check, files[0].read_bytes()

    def late(self: Checker, path: Path) -> FileResult:
        files[0].write_bytes(former.replace(b'"MCC":0.', b'"MCC":1.', 1))
        return check(self, path)

    monkeypatch.setattr(Checker, "check", late)
    warm(files, folder)
    monkeypatch.setattr(Checker, "check", check)
    files[0].write_bytes(former)
    assert warm(files, folder) == cold(files)


def test_a_full_disk_keeps_nothing_and_says_the_same(tmp_path):
    """RLIMIT_FSIZE stands for a full disk: every write beyond a few bytes fails with an OSError."""
    files, folder = repository(tmp_path, ROWS[:3]), tmp_path / "cache"
    expected = cold(files)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            code = 0 if warm(files, folder) == expected else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    files = repository(tmp_path, ROWS[:2])
    (tmp_path / "file").write_bytes(b"")
    expected = cold(files)
    for folder in (tmp_path / "file", tmp_path / "file/below", Path("/proc/none")):
        assert warm(files, folder) == expected


def test_an_entry_is_read_back_only_under_its_name_and_whole(tmp_path):
    cache = Cache(tmp_path / "a/b")
    assert cache.load("x") is None
    cache.save("x", b"content")
    assert cache.load("x") == b"content"
    (tmp_path / "a/b/x").rename(tmp_path / "a/b/y")
    assert cache.load("y") is None
    cache.save("x", b"")
    assert cache.load("x") == b""
    (tmp_path / "a/b/z").symlink_to("x")
    assert cache.load("z") is None


def test_what_was_not_used_for_longest_goes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "CACHE_BYTES_MAX", 400)
    cache = Cache(tmp_path)
    for number in range(6):
        cache.save(str(number), b"x" * 50)
        if (tmp_path / str(number)).exists():
            os.utime(tmp_path / str(number), (number, number))
        if number == 3:
            assert cache.load("0") == b"x" * 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "3", "4", "5"]
    cache.save("large", b"x" * 101)
    assert cache.load("large") is None


@pytest.mark.parametrize("case", ["few files", "github", "no cache"])
def test_nothing_is_kept_where_it_does_not_pay_or_is_not_safe(tmp_path, monkeypatch, case):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = repository(tmp_path, ROWS[:2])
    api.check(*files)
    assert len(list((tmp_path / "cache/geneb-ci/check").iterdir())) == 1
    shutil.rmtree(tmp_path / "cache")
    if case == "few files":
        monkeypatch.setattr(cached, "CACHED_FILES_MIN", len(files) + 1)
    elif case == "github":
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
    api.check(*files, cache=case != "no cache")
    assert not (tmp_path / "cache").exists()


def test_a_user_without_a_home_has_checks_all_the_same(tmp_path, monkeypatch):
    files = repository(tmp_path, ROWS[:2])
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert len(api.check(*files).files) == len(files)
    with pytest.raises(UsageProblem, match="this user has no home folder"):
        cache_folder("work")
