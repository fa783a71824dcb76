"""What docs/contributor/install.md promises: a command of its own name, few packages, an image."""

import os
import re
import shutil
import subprocess
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from geneb_ci import __version__
from tests.loopback import loopback
from tests.models.index import PLATFORM, handler, lock, wheel
from tests.paths import ROOT, outside_rows

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs/contributor/install.md").read_text(encoding="utf-8")
RECIPE = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [line.split(maxsplit=1) for line in RECIPE.splitlines() if re.match("[A-Z]", line)]


def steps(name: str) -> list[str]:
    return [rest for kind, rest in STEPS if kind == name]


def test_the_changelog_begins_with_the_version_and_its_day():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *_ = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert re.fullmatch(rf"{re.escape(__version__)}, \d{{4}}-\d\d-\d\d", first)


def test_uvx_finds_a_command_of_the_package_s_own_name():
    assert PROJECT["scripts"][PROJECT["name"]] == "geneb_ci.cli.main:main"


def test_a_check_installs_as_few_packages_as_the_page_says():
    names = {Requirement(dependency).name for dependency in PROJECT["dependencies"]}
    assert not names & {"numpy", "torch", "transformers", "huggingface_hub"}
    text = (ROOT / "requirements/check.txt").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE))
    (match,) = re.findall(r"needs (\d+) small\s+packages", PAGE)
    assert 10 < len(locked) <= int(match)


def test_every_extra_that_the_page_names_exists():
    named = set(re.findall(r"\.\[(\w+)\]", PAGE))
    assert named == {"all", "audit"} <= PROJECT["optional-dependencies"].keys()


def test_the_hook_of_the_page_is_the_one_that_exists():
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (requests,) = yaml.safe_load(block)["repos"][0]["hooks"]
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert requests == {"id": hook["id"]}


def test_the_image_is_of_a_supported_python():
    (base,) = steps("FROM")
    version = re.match(r"python:(3\.\d+)-", base)
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def test_the_image_copies_what_exists_and_installs_from_locks():
    sources = {source for line in steps("COPY") for source in line.split()[:-1]} - {"."}
    assert [source for source in sorted(sources) if not outside_rows(source).exists()] == []
    installs = re.findall(r"pip install [^&]*", " && ".join(steps("RUN")))
    assert [re.findall(r"-r (\S+)|(--editable)", install) for install in installs] == [
        [("requirements/dev.txt", "")], [("requirements/torch.txt", "")], [("", "--editable")],
    ]  # fmt: skip
    assert "--require-hashes --no-deps" in installs[0]
    assert "--no-deps" in installs[2]


def test_the_image_has_the_sandbox_and_no_rights_of_root():
    assert "bubblewrap" in " ".join(steps("RUN"))
    (user,) = steps("USER")
    assert f"useradd --create-home --uid {user} " in " ".join(steps("RUN")) + " "
    assert steps("ENTRYPOINT") == ['["geneb-ci"]']


@pytest.mark.parametrize("name", ["keys", "**/*.pem", ".venv"])
def test_no_key_and_no_environment_goes_into_the_image(name):
    """Both podman and docker read this file; docker reads no .containerignore."""
    assert name in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.nightly  # in the gate: no lock is installed with what a resolver adds
def test_a_lock_installs_after_a_newer_release_of_what_another_needs_with_an_extra(tmp_path):
    """As `pydantic[email]`, which sigstore-rekor-types needs, on the day of pydantic 2.14.4."""
    wheels = dict(
        [
            wheel("base", "1.0", {"base.py": ""}),
            wheel("base", "1.1", {"base.py": ""}),
            wheel("user", "1.0", {"user.py": ""}, needs="base[mail]>=1"),
        ]
    )
    for folder in ("tools", "requirements"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "tools/install-locked", tmp_path / "tools")
    locked = [lock(name, "1.0", wheels[f"{name}-1.0-{PLATFORM}.whl"]) for name in ("user", "base")]
    (tmp_path / "requirements/one.txt").write_text("".join(locked), encoding="utf-8")
    venv.create(tmp_path / "venv")
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    installed = Path(sysconfig.get_path("purelib"), "pip")
    (packages / "pip").symlink_to(installed)  # what is installed beside it is not seen
    python = tmp_path / "venv/bin/python"
    with loopback(handler(wheels)) as server:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
        done = subprocess.run(
            [tmp_path / "tools/install-locked", python, "requirements/one.txt"],
            env=plain | {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"{server}/simple"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    listed = [python, "-c", "import base, user, importlib.metadata as m; print(m.version('base'))"]
    assert subprocess.run(listed, capture_output=True, text=True, check=True).stdout == "1.0\n"


@pytest.mark.parametrize("path", ["Makefile", "Containerfile", "tools/rehearse/ci-run"])
def test_no_lock_is_installed_with_what_a_resolver_adds(path):
    lines = outside_rows(path).read_text(encoding="utf-8").splitlines()
    hashed = [line for line in lines if "--require-hashes" in line]
    assert hashed
    assert [line for line in hashed if "--no-deps" not in line] == []
