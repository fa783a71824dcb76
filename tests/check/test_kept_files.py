"""What happens to kept results: full disks, clocks, links, other code, two runs at once."""

import contextlib
import json
import os
import resource
import shutil
import signal
from pathlib import Path
from typing import Any

from geneb_ci.check import reuse as stores
from geneb_ci.check.reuse import Store
from geneb_ci.check.runner import Checker, Computer
from geneb_ci.common.shipped import shipped
from geneb_ci.statistics import reference
from tests.check.test_reuse import cold, repository, warm


def test_a_full_disk_keeps_nothing_and_says_the_same(tmp_path):
    """RLIMIT_FSIZE stands for a full disk: every write beyond a few bytes fails with an OSError."""
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    expected = warm(files, store)
    files[0].write_text(files[1].read_text(encoding="utf-8"), encoding="utf-8")
    expected = cold(files)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            code = 0 if warm(files, store) == expected else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert warm(files, store) == expected
    assert all(not path.name.startswith(".") for path in (tmp_path / "cache").iterdir())


def test_two_runs_at_once_say_what_one_says(tmp_path):
    """Both write the same folder again and again while a third reads it."""
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    expected = [cold(files), cold(files[:3])]
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                said = []
                for _ in range(4):
                    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
                    said.append(warm(files[:3] if number else files, store))
                code = 0 if set(said) == {expected[number]} else 2
            os._exit(code)
        children.append(child)
    for _ in range(3):
        assert warm(files, store) == expected[0]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]


def test_a_clock_that_goes_back_changes_no_verdict(tmp_path):
    """Results are found by digests alone: a row may be changed and look older than its result."""
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    warm(files, store)
    document = json.loads(files[2].read_bytes())
    document["results"]["full"].popitem()
    before = files[2].stat()
    text = json.dumps(document)
    files[2].write_text(text + " " * max(0, before.st_size - len(text)), encoding="utf-8")
    os.utime(files[2], ns=(0, before.st_mtime_ns - 10**12))
    for path in (tmp_path / "cache").iterdir():
        os.utime(path, (2**33, 2**33))  # in the future
    assert warm(files, store) == cold(files)


def test_other_code_or_another_package_computes_anew(tmp_path, monkeypatch):
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    computed = []
    compute = Computer.compute

    def counted(self: Computer, miss: Any) -> Any:
        computed.append(miss)
        return compute(self, miss)

    monkeypatch.setattr(Computer, "compute", counted)
    warm(files, store)
    site = tmp_path / "site"
    (site / "numpy-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    computed.clear()
    assert warm(files, store) == cold(files)
    assert len(computed) == len(files)
    computed.clear()
    package = tmp_path / "package"
    shutil.copytree(stores._PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(stores, "_PACKAGE", package)
    warm(files, store)
    computed.clear()
    module = package / "check/claims.py"
    module.write_text(module.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    warm(files, store)
    assert len(computed) == len(files)


def test_folders_behind_links_have_their_own_results(tmp_path):
    """A link that leads to other rows than before is the other rows."""
    store = Store(tmp_path / "cache")
    for name in ("one", "two"):
        repository(tmp_path / name)
    changed = min((tmp_path / "two/submissions").glob("*.json"))
    document = json.loads(changed.read_bytes())
    document["results"]["full"].popitem()
    changed.write_text(json.dumps(document), encoding="utf-8")
    link = tmp_path / "link"
    for name in ("one", "two", "one"):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        files = sorted((link / "submissions").glob("*.json"))
        assert warm(files, store) == cold(files)
    kept = tmp_path / "kept"
    kept.symlink_to(tmp_path / "cache")
    assert warm(files, Store(kept)) == cold(files)


def test_a_folder_that_may_not_be_written_is_read(tmp_path):
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    warm(files, store)
    (tmp_path / "cache").chmod(0o500)
    try:
        files[0].write_text(files[1].read_text(encoding="utf-8"), encoding="utf-8")
        assert warm(files, store) == cold(files)
    finally:
        (tmp_path / "cache").chmod(0o700)


def test_what_a_rule_says_once_it_no_longer_crashes(tmp_path, monkeypatch):
    """A crash is not kept: the next run, which has the memory that was missing, says the rest."""
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    part = Computer._part
    calls = []

    def crashed(checker: Checker, context: Any) -> list[Any]:
        calls.append(context)
        found = part(checker, context)
        if len(calls) < 9:
            found[0].append([*_CRASH])
        return found

    monkeypatch.setattr(Computer, "_part", staticmethod(crashed))
    assert warm(files, store) != cold(files)
    monkeypatch.setattr(Computer, "_part", staticmethod(part))
    assert warm(files, store) == cold(files)


_CRASH = ["check-crashed", "error", "x", False, "", 1, 1, "x", "a verdict", "", None, None]


def test_the_fit_of_rows_is_kept_for_a_row_that_changes(tmp_path, monkeypatch):
    """Other rows than the shipped ones are fitted once, and again where scores change."""
    files, store = repository(tmp_path), Store(tmp_path / "cache")
    fitted = []
    fit = reference._fitted

    def counted(*given: Any) -> Any:
        fitted.append(given)
        return fit(*given)

    monkeypatch.setattr(reference, "_fitted", counted)
    warm(files, store)
    count = len(fitted)
    assert count
    files[0].write_bytes(files[0].read_bytes() + b"\n")  # the same scores
    found = warm(files, store)
    assert len(fitted) == count
    assert found == cold(files)
    document = json.loads(files[0].read_bytes())
    cell = next(iter(document["results"]["full"].values()))
    cell["MCC"] = cell["MCC"] / 2
    files[0].write_text(json.dumps(document), encoding="utf-8")
    count = len(fitted)
    found = warm(files, store)
    assert len(fitted) > count
    assert found == cold(files)


def test_every_shipped_file_that_a_rule_reads_is_in_the_digest_of_the_code(tmp_path, monkeypatch):
    before = stores.code_digest()
    for name in ("known.json", "shipped-fit.json", "shipped-rows.json"):
        other = tmp_path / name
        other.write_bytes(shipped("schemas", name).read_bytes() + b"\n")

        def changed(folder: str, asked: str, other: Path = other) -> Path:
            return other if asked == other.name else shipped(folder, asked)

        monkeypatch.setattr(stores, "shipped", changed)
        assert stores.code_digest() != before
