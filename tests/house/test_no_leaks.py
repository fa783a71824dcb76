"""No tracked file tells where a developer works or from where packages came."""

import re

import pytest

from tests.house.tracked import ours
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

# Written in pieces: this file is tracked, too.
FOLDERS = [
    rf"/{'home'}/[a-z_][\w.-]*/",
    rf"/{'Users'}/[A-Za-z_][\w.-]*/",
    rf"/{'root'}/[\w.-]",
    rf"/{'work'}/[\w.-]",
    rf"\b[A-Z]:\\{'Users'}\\",
]
HOSTS = [
    r"\.".join(parts)
    for parts in (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("registry", "npm" + "js", "org"),
        ("registry", "yarn" + "pkg", "com"),
        ("conda", "anaconda", "org"),
        ("rubygems", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("registry-1", "docker", "io"),
        ("download", "pytorch", "org"),
    )
]
# An index by address, whoever it belongs to.
INDEXES = [r"--(?:extra-)?index-url\s+\S*://", r"\bindex" + r"-url\s*=\s*\S*://"]
PATTERNS = re.compile("|".join([*FOLDERS, *HOSTS, *INDEXES]).encode())


def test_no_tracked_file_leaks_a_path_or_a_registry():
    leaks = [
        f"{path}: {match.group().decode(errors='replace')}"
        for path in ours()
        for match in PATTERNS.finditer((ROOT / path).read_bytes())
    ]
    assert leaks == []


@pytest.mark.parametrize(
    "text",
    [
        "/" + "home/jo/geneb-ci/x.py",
        "/" + "Users/Jo/geneb-ci",
        "/" + "root/.cache",
        "C:\\" + "Users\\jo",
        "https://files.python" + "hosted.org/packages/x",
        "--index" + "-url https://mirror.example/simple",
    ],
)
def test_the_patterns_see_what_they_should(text):
    assert PATTERNS.search(text.encode()) is not None
