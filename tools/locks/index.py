"""Asks the package index which files each release has."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import requests
from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_version,
    parse_sdist_filename,
    parse_wheel_filename,
)
from pip._internal.models.index import PyPI
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

# The index that pip itself uses when nothing is configured.
DEFAULT_INDEX = PyPI.simple_url
JSON = "application/vnd.pypi.simple.v1+json"
AT_ONCE = 8  # requests: more gain nothing, and a shared index may throttle them
SECONDS = 60  # without a byte; the largest list has a few megabytes
# A refusal or a restart is over within seconds; these wait for 0 + 1 + 2 + 4 + 8 of them.
RETRIES = Retry(total=5, backoff_factor=0.5, status_forcelist=(429, 500, 502, 503, 504))
# Where pip, requests, curl and uv look for the certificates of a network's own authority.
BUNDLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class IndexUnreachableError(Exception):
    """The index gave no list of files."""


@dataclass(frozen=True)
class File:
    """A wheel or an sdist; the tags of an sdist are empty."""

    name: str
    sha256: str
    version: str
    tags: frozenset[Tag] = frozenset()
    build: tuple[int, str] | tuple[()] = ()
    requires_python: str = ""
    uploaded: str = ""
    """In ISO 8601 and UTC; empty where the index does not say."""
    yanked: bool = False


Releases = dict[tuple[str, str], list[File]]


def releases(pins: Iterable[tuple[str, str]], index: str = DEFAULT_INDEX) -> Releases:
    """List the files of each name and version; a version that is not published has none."""
    wanted = sorted(set(pins))
    versions: dict[str, set[str]] = {}
    for name, version in wanted:
        versions.setdefault(name, set()).add(canonicalize_version(version))
    with requests.Session() as session, ThreadPoolExecutor(AT_ONCE) as pool:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE, max_retries=RETRIES))
        session.verify = bundle() or True
        answers = pool.map(lambda one: _files(session, index, *one), versions.items())
        lists = dict(zip(versions, answers, strict=True))
    return {
        (name, version): [f for f in lists[name] if f.version == canonicalize_version(version)]
        for name, version in wanted
    }


def bundle() -> str | None:
    """Return the certificates that the environment names, if it does."""
    return next((os.environ[name] for name in BUNDLES if os.environ.get(name)), None)


def _files(session: requests.Session, index: str, name: str, versions: set[str]) -> list[File]:
    try:
        answer = session.get(f"{index}/{name}/", headers={"Accept": JSON}, timeout=SECONDS)
        if answer.status_code == requests.codes.not_found:
            return []
        answer.raise_for_status()
        return [file for one in answer.json()["files"] if (file := _file(one, versions))]
    except (requests.RequestException, KeyError, TypeError) as error:
        message = f"the package index gave no list of {name}'s files: {error}"
        raise IndexUnreachableError(message) from error


def _file(one: dict[str, Any], versions: set[str]) -> File | None:
    """Read one entry of the list; what is neither wheel nor sdist is not installed by anything."""
    name = one["filename"]
    tags: frozenset[Tag] = frozenset()
    build: tuple[int, str] | tuple[()] = ()
    if _written_version(name) not in versions:
        return None
    try:
        if name.endswith(".whl"):
            _, version, build, tags = parse_wheel_filename(name)
        else:
            _, version = parse_sdist_filename(name)
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return File(
        name=name,
        sha256=one["hashes"].get("sha256", ""),
        version=canonicalize_version(version),
        tags=tags,
        build=build,
        requires_python=one.get("requires-python") or "",
        uploaded=one.get("upload-time") or "",
        yanked=one.get("yanked", False) is not False,
    )


def _written_version(name: str) -> str:
    """Read the version off a file's name; of thousands of files, few are worth parsing whole."""
    if name.endswith(".whl"):
        return canonicalize_version("-".join(name.split("-")[1:2]))
    return canonicalize_version(
        name.rpartition("-")[2].removesuffix(".tar.gz").removesuffix(".zip")
    )
