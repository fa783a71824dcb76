"""Environments: packages of a lock, installed once, from a package index on this machine."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.fetching import (
    InstalledPackages,
    entry_lock,
    install_lock,
    require_python,
)
from geneb_ci.common.errors import BadConfiguration, MachineFault
from geneb_ci.models.entry import Environment
from tests.loopback import loopback
from tests.models.index import handler, lock, wheel

VERSIONS = ("4.38.0", "4.46.0")
WHEELS = {
    version: wheel("tinyformers", version, {"tinyformers.py": f"VERSION = {version!r}\n"})
    for version in VERSIONS
}


class Index:
    """Locks of two versions, and the index that has both."""

    def __init__(self, policy: Path, requests: list[str]) -> None:
        self.policy, self.requests = policy, requests
        self.cache = policy.parent / "cache"
        (policy / "environments").mkdir(parents=True)

    def environment(self, version: str, text: str | None = None, **changes: str) -> Environment:
        """Write the lock of a version, and return what an entry says of it."""
        name = f"tinyformers-{version}.txt"
        raw = (text or lock("tinyformers", version, WHEELS[version][1])).encode()
        (self.policy / "environments" / name).write_bytes(raw)
        fields = {"lock": name, "sha256": hashlib.sha256(raw).hexdigest()} | changes
        return Environment.model_validate(fields)

    def install(self, expected: Environment) -> InstalledPackages:
        return install_lock(entry_lock(expected, self.policy), cache=self.cache)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    requests: list[str] = []
    for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    with loopback(handler(dict(WHEELS.values()), requests)) as server:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{server}/simple")
        yield Index(tmp_path / "policy", requests)


def version_in(installed: InstalledPackages) -> str:
    """Return the version that a fresh Python imports from an environment."""
    done = subprocess.run(
        [sys.executable, "-c", "import tinyformers; print(tinyformers.VERSION)"],
        env={"PYTHONPATH": str(installed.folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_two_versions_of_a_package_stand_beside_each_other(index):
    installs = [index.install(index.environment(version)) for version in VERSIONS]
    assert [version_in(install) for install in installs] == list(VERSIONS)
    assert len({install.folder for install in installs}) == 2
    count = len(index.requests)
    again = [index.install(index.environment(version)) for version in VERSIONS]
    assert again == installs
    assert len(index.requests) == count, "nothing is fetched twice"


def test_another_wheel_than_the_lock_has_is_not_installed(index):
    text = lock("tinyformers", VERSIONS[0], b"another wheel")
    with pytest.raises(MachineFault, match=r"tinyformers-4\.38\.0\.txt cannot be installed: "):
        index.install(index.environment(VERSIONS[0], text))
    assert not any(index.cache.iterdir()), "nothing half installed is left"


def test_a_lock_without_hashes_is_not_installed(index):
    with pytest.raises(BadConfiguration, match=r":1: the lock has no hash of \"tinyformers==4"):
        index.install(index.environment(VERSIONS[0], "tinyformers==4.38.0\n"))
    assert index.requests == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, ", expected 0000"),
        ({"lock": "absent.txt"}, "absent.txt: cannot be read: No such file"),
    ],
)
def test_a_lock_that_is_not_the_one_of_the_entry(index, change, message):
    with pytest.raises(BadConfiguration) as caught:
        index.install(index.environment(VERSIONS[0], **change))
    assert message in caught.value.message
    assert index.requests == []


def test_another_python_is_refused(index):
    with pytest.raises(
        AuditRefused, match=r"the model needs Python 3\.7, but geneb-ci runs in Python 3\."
    ):
        require_python(index.environment(VERSIONS[0], python="3.7"))
