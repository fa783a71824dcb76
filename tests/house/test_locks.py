"""Every lock installs on every Python and system that the documents promise.

The package index is asked once for the files of each pinned release. Where it cannot be reached,
these tests fail in CI and are skipped elsewhere.
"""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from geneb_ci.models.entry import Environment, parse_entry
from tests.paths import ROOT
from tools.lock import environment
from tools.locks.entries import published_by, read_lock
from tools.locks.faults import hash_faults, target_faults
from tools.locks.index import IndexUnreachableError, releases
from tools.locks.targets import ARM_MACS, INTEL_MACS, LINUX, best_wheel, entries_for

NAMES = tuple(f"requirements/{name}.txt" for name in ("check", "action", "dev", "docs"))
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
LOCKS = {name: read_lock(text) for name, text in TEXTS.items()}
TORCH = read_lock((ROOT / "requirements/torch.txt").read_text(encoding="utf-8"))
TARGETS = [*LINUX, *ARM_MACS]
FOLDER = ROOT / "leaderboard/policy"
ENVIRONMENTS = {
    path.name: read_lock(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.glob("environments/*.txt"))
}
"""Locks of the environments in which some models of the registry run."""
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")


@pytest.fixture(scope="session")
def published():
    """Ask for the files of every pinned release."""
    locks = (*LOCKS.values(), *ENVIRONMENTS.values(), TORCH)
    pins = {(e.name, e.version) for entries in locks for e in entries}
    try:
        return releases(pins)
    except IndexUnreachableError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)  # else once for each test, at length
        pytest.skip(str(error))


@pytest.mark.parametrize("lock", NAMES)
def test_each_lock_has_the_hash_of_every_published_file(lock, published):
    assert hash_faults(lock, LOCKS[lock], published, published_by(TEXTS[lock])) == []


@pytest.mark.parametrize("lock", NAMES)
def test_each_lock_has_what_pip_picks_on_every_target(lock, published):
    assert target_faults(lock, LOCKS[lock], published, TARGETS) == []


def test_on_intel_macs_only_the_check_installs(published):
    """Neither cryptography nor torch has a wheel for them: docs/github.md says so."""
    check, action, *_ = NAMES
    assert target_faults(check, LOCKS[check], published, INTEL_MACS) == []
    lacking = {f.split()[1] for f in target_faults(action, LOCKS[action], published, INTEL_MACS)}
    assert lacking == {"cryptography"}
    (torch,) = TORCH
    files = published[torch.name, torch.version]
    assert [best_wheel(target, files) for target in INTEL_MACS] == [None] * 3


@pytest.mark.parametrize("lock", NAMES)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_nothing_has_to_be_built_from_source(lock, target, published):
    entries = entries_for(target, LOCKS[lock])
    assert [e for e in entries if not best_wheel(target, published[e.name, e.version])] == []


def environments() -> dict[str, Environment]:
    """Return the environment of each model that has one."""
    found = {}
    for path in sorted(FOLDER.glob("models/*.toml")):
        run = parse_entry(path.read_bytes(), path.name).entry.run
        if run is not None and run.environment is not None:
            found[path.stem] = run.environment
    return found


def test_every_lock_of_an_environment_is_that_of_a_model():
    assert {one.lock for one in environments().values()} == ENVIRONMENTS.keys()


@pytest.mark.parametrize("target", LINUX, ids=str)
def test_an_environment_installs_on_the_pythons_that_its_entry_allows(target, published):
    """An audit installs wheels alone; a Python without one has to be refused by the entry."""
    here = ".".join(map(str, target.python))
    wrong = []
    for model_id, wanted in environments().items():
        for entry in entries_for(target, ENVIRONMENTS[wanted.lock]):
            wheel = best_wheel(target, published[entry.name, entry.version])
            installs = wheel is not None and wheel.sha256 in entry.hashes
            if not installs and wanted.python in {None, here}:
                wrong.append(f"{model_id}: {wanted.lock}: no wheel of {entry}")
    assert wrong == []


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_torch_has_a_wheel_for_every_target(target, published):
    (torch,) = TORCH
    assert best_wheel(target, published[torch.name, torch.version]) is not None


@pytest.mark.parametrize("lock", NAMES)
def test_each_removed_hash_and_each_altered_one_is_seen(lock, published):
    until = published_by(TEXTS[lock])
    for entry in LOCKS[lock]:
        files = {file.sha256: file.name for file in published[entry.name, entry.version]}
        for one in entry.hashes:
            less = replace(entry, hashes=entry.hashes - {one})
            lacks = f"{lock}: {entry} lacks the hash of {files[one]}, sha256:{one}: run `make lock`"
            assert hash_faults(lock, [less], published, until) == [lacks]
            false = ("0" if one[0] != "0" else "1") + one[1:]
            other = replace(entry, hashes=less.hashes | {false})
            unknown = (
                f"{lock}: {entry} has the hash sha256:{false}, which is of none of its"
                f" {len(files)} published files: run `make lock`, and find out where the hash came"
                " from"
            )
            assert hash_faults(lock, [other], published, until) == [lacks, unknown]


def test_a_copy_with_one_altered_digit_is_red(published):
    name = "requirements/action.txt"
    (found,) = re.findall(
        r"^cffi==.*?--hash=sha256:([0-9a-f]{64})", TEXTS[name], re.MULTILINE | re.DOTALL
    )
    text = TEXTS[name].replace(found, found[:-1] + ("0" if found[-1] != "0" else "1"))
    faults = hash_faults(name, read_lock(text), published, published_by(text))
    assert [f.split(" ")[:5] for f in faults] == [
        [f"{name}:", "cffi", "2.1.1", "lacks", "the"],
        [f"{name}:", "cffi", "2.1.1", "has", "the"],
    ]


def test_one_hash_of_one_wheel_is_no_lock_for_other_pythons(published):
    """So the locks once were: pip then stops with a mismatch wherever another wheel is due."""
    name = "requirements/action.txt"
    (cffi,) = (entry for entry in LOCKS[name] if entry.name == "cffi")
    files = published[cffi.name, cffi.version]
    (here,) = (target for target in LINUX[:2] if target.libc == (2, 39))
    wheel = best_wheel(here, files)
    assert wheel is not None
    single = replace(cffi, hashes=frozenset({wheel.sha256}))
    faults = target_faults(name, [single], published, TARGETS)
    assert [re.findall(r"which (.*) installs", fault)[0] for fault in faults] == [
        str(target) for target in TARGETS if best_wheel(target, files) != wheel
    ]
    assert len(faults) == len(TARGETS) - 2  # both versions of glibc take the same wheel


@pytest.mark.usefixtures("published")  # without an index there is nothing to resolve
@pytest.mark.parametrize("lock", NAMES)
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_each_lock_names_all_that_its_packages_need(lock, python, tmp_path):
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda p: resolved(ROOT / lock, python, p, tmp_path), PLATFORMS))
    assert [run.stderr for run in runs if run.returncode] == []


@pytest.mark.usefixtures("published")
def test_a_removed_package_is_seen(tmp_path):
    lock = tmp_path / "action.txt"
    text = TEXTS["requirements/action.txt"]
    lock.write_text(re.sub(r"^pycparser==.*\n(?:    .*\n)+", "", text, flags=re.MULTILINE), "utf-8")
    done = resolved(lock, "3.13", PLATFORMS[0], tmp_path)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())  # uv wraps its lines
    assert "no trusted hash was provided for: `pycparser`" in said


def resolved(
    lock: Path, python: str, platform: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Let a resolver look for what the lock's packages need on another machine."""
    return subprocess.run(
        [
            *(find_uv_bin(), "pip", "install", "--no-config", "--dry-run", "--require-hashes"),
            *("--only-binary", ":all:", "--python-platform", platform, "--python-version", python),
            *("--target", folder / "target", "--requirement", lock),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_that_a_cpu_build_of_torch_needs_is_locked():
    needed = [Requirement(one) for one in requires("torch") or []]
    names = {
        canonicalize_name(one.name)
        for one in needed
        if one.marker is None or one.marker.evaluate({"extra": ""})
    }
    cuda = {name for name in names if name.startswith(("cuda-", "nvidia-", "triton"))}
    assert names - cuda <= {entry.name for entry in LOCKS["requirements/dev.txt"]}
