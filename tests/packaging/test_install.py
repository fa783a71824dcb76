"""What docs/install.md promises: one command of the package's own name, few packages, an image."""

import re
import tomllib
from pathlib import PurePosixPath

import pytest
import yaml
from packaging.requirements import Requirement

from tests.paths import ROOT
from tools.locks.entries import read_lock

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
RECIPE = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [line.split(maxsplit=1) for line in RECIPE.splitlines() if re.match("[A-Z]", line)]


def steps(name: str) -> list[str]:
    return [rest for kind, rest in STEPS if kind == name]


def test_uvx_finds_a_command_of_the_package_s_own_name():
    assert PROJECT["scripts"][PROJECT["name"]] == "geneb_ci.cli.main:main"


def test_a_check_installs_as_few_packages_as_the_page_says():
    names = {Requirement(one).name for one in PROJECT["dependencies"]}
    assert not names & {"numpy", "torch", "transformers", "huggingface_hub"}
    locked = read_lock((ROOT / "requirements/check.txt").read_text(encoding="utf-8"))
    (said,) = re.findall(r"needs (\d+) small\s+packages", PAGE)
    assert len({entry.name for entry in locked}) <= int(said)


def test_every_extra_that_the_page_names_exists():
    named = set(re.findall(r"\.\[(\w+)\]", PAGE))
    assert named == {"all", "audit"} <= PROJECT["optional-dependencies"].keys()


def test_the_hook_of_the_page_is_the_one_that_exists():
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (asked,) = yaml.safe_load(block)["repos"][0]["hooks"]
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert asked == {"id": hook["id"]}


def test_the_image_is_of_a_supported_python():
    (base,) = steps("FROM")
    version = re.match(r"python:(3\.\d+)-", base)
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def test_the_image_copies_what_exists_and_installs_from_locks():
    sources = [source for line in steps("COPY") for source in line.split()[:-1]]
    assert [one for one in sources if not (ROOT / PurePosixPath(one)).exists()] == []
    installs = re.findall(r"pip install [^&]*", " && ".join(steps("RUN")))
    assert [re.findall(r"-r (\S+)|(--editable)", one) for one in installs] == [
        [("requirements/dev.txt", "")], [("requirements/torch.txt", "")], [("", "--editable")],
    ]  # fmt: skip
    assert "--require-hashes" in installs[0]
    assert "--no-deps" in installs[2]


def test_the_image_has_the_sandbox_and_no_rights_of_root():
    assert "bubblewrap" in " ".join(steps("RUN"))
    assert steps("USER") == ["auditor"]
    assert steps("ENTRYPOINT") == ['["geneb-ci"]']


@pytest.mark.parametrize("name", ["keys", "**/*.pem", ".venv"])
def test_no_key_and_no_environment_goes_into_the_image(name):
    assert name in (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
