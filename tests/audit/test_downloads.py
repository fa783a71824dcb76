"""Weights from Zenodo, Drive, Dataverse and plain servers: by digest, over loopback."""

import bz2
import hashlib
import lzma
import random
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from geneb_ci.audit.commitment import Weights
from geneb_ci.audit.rerun.fetching import WEIGHTS_DOWNLOAD
from geneb_ci.audit.rerun.sources import registered_weights
from geneb_ci.audit.rerun.weights import provide_weights
from geneb_ci.common.download import download
from geneb_ci.common.errors import GenebError, UsageProblem, WeightsRefused
from geneb_ci.models.entry import WeightsSource
from tests.loopback import as_public, loopback
from tests.models.publishers import Shelf, tar_gz

__all__ = ["as_public"]  # a fixture: pytest finds it by its name here
pytestmark = pytest.mark.usefixtures("as_public")
SOUND = save({"a": np.zeros((200, 300), dtype=np.float32)})
CONFIG = b'{"hidden_size": 3}'
FILES = {"config.json": CONFIG, "model.safetensors": SOUND}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


DIGESTS = {name: sha256(content) for name, content in FILES.items()}
INSIDE = {f"models/Small.1024nt/{name}": content for name, content in FILES.items()}
PLACES = {
    "zenodo": {f"/records/7995778/files/{name}": content for name, content in FILES.items()},
    "gdrive": {"/id-of-config": CONFIG, "/id-of-weights": SOUND},
    "dataverse": {"/api/access/datafile/11": CONFIG, "/api/access/datafile/12": SOUND},
    "url": {f"/models/small/{name}": content for name, content in FILES.items()},
    "archive": {"/records/7995778/files/models.tar.gz": tar_gz({"README": b"?"} | INSIDE)},
}
IDS = {
    "gdrive": {"config.json": "id-of-config", "model.safetensors": "id-of-weights"},
    "dataverse": {"config.json": "11", "model.safetensors": "12"},
}


def source_of(kind: str, server: str, **changes: object) -> WeightsSource:
    """Return the source of an entry: two files that this kind of server has."""
    fields: dict[str, object] = {"kind": kind, "files": DIGESTS, "ids": IDS.get(kind, {})}
    fields["location"] = {
        "zenodo": "7995778",
        "archive": "7995778",
        "gdrive": "10UPPx6V13oQW6knuLV7d8SRIA3D6hYor",
        "dataverse": "doi:10.7910/DVN/HDT0RN",
        "url": f"{server}/models/small/",
    }[kind]
    if kind == "archive":
        fields |= {"kind": "zenodo", "archive": "models.tar.gz", "folder": "models/Small.1024nt"}
    if kind != "url":
        fields["host"] = server
    return WeightsSource.model_validate(fields | changes)


@pytest.mark.parametrize("kind", PLACES)
def test_every_kind_of_publication_is_fetched_and_verified(kind, tmp_path):
    notices: list[str] = []
    with loopback(Shelf(dict(PLACES[kind])).handler()) as server:
        weights = registered_weights(source_of(kind, server))
        provided = provide_weights(weights, tmp_path / "weights", 2, notices.append)
        assert (
            provide_weights(weights, tmp_path / "weights", 2, notices.append) == provided
        )  # asks nobody
    assert provided == DIGESTS
    assert sorted(path.name for path in (tmp_path / "weights").iterdir()) == sorted(FILES)
    host = server.removeprefix("http://")
    assert notices == (
        [f"fetching config.json, model.safetensors from {host}"]
        if kind == "archive"
        else [f"fetching {name} from {host}" for name in FILES]
    )


def test_a_download_that_broke_off_is_continued(tmp_path):
    shelf = Shelf(dict(PLACES["url"]), break_after=100_000)
    path = tmp_path / "model.safetensors"
    with loopback(shelf.handler()) as server:
        address = f"{server}/models/small/model.safetensors"
        with pytest.raises(WeightsRefused, match=r"cannot be fetched: .* bytes are missing"):
            download(address, path, DIGESTS[path.name], WEIGHTS_DOWNLOAD)
        assert not path.exists()
        assert path.with_name("model.safetensors.part").stat().st_size == 100_000
        download(address, path, DIGESTS[path.name], WEIGHTS_DOWNLOAD)
    assert path.read_bytes() == SOUND
    assert [expected for _, expected in shelf.requests] == [None, "bytes=100000-"]


def test_a_download_that_was_killed_before_its_last_step_is_finished(tmp_path):
    path = tmp_path / "model.safetensors"
    path.with_name("model.safetensors.part").write_bytes(SOUND)
    with loopback(Shelf(dict(PLACES["url"])).handler()) as server:
        download(f"{server}/models/small/{path.name}", path, DIGESTS[path.name], WEIGHTS_DOWNLOAD)
    assert path.read_bytes() == SOUND


@pytest.mark.parametrize("kind", ["url", "archive"])
def test_another_file_than_was_pinned_is_not_kept(kind, tmp_path):
    other = SOUND[:-1] + b"\1"
    places = {
        "url": PLACES["url"] | {"/models/small/model.safetensors": other},
        "archive": {
            next(iter(PLACES["archive"])): tar_gz(
                INSIDE | {"models/Small.1024nt/model.safetensors": other}
            )
        },
    }
    with loopback(Shelf(places[kind]).handler()) as server:
        weights = registered_weights(source_of(kind, server))
        with pytest.raises(WeightsRefused) as caught:
            provide_weights(weights, tmp_path, 2)
    assert f": sha256 {sha256(other)}, expected {DIGESTS['model.safetensors']}" in (
        caught.value.message
    )
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


NOT_DELIVERED = {
    "absent": (Shelf(), "the server answered 404 Not Found"),
    "a page": (Shelf(dict(PLACES["url"]), web_page=True), "sent a web page instead of the file"),
    "elsewhere": (Shelf(redirect="http://example.org/x"), "is not an https address"),
    "a file of this machine": (Shelf(redirect="file:///etc/passwd"), "is not allowed"),
}


@pytest.mark.parametrize("name", NOT_DELIVERED)
def test_what_a_server_may_do_instead(name, tmp_path):
    shelf, message = NOT_DELIVERED[name]
    with loopback(shelf.handler()) as server, pytest.raises(WeightsRefused) as caught:
        provide_weights(registered_weights(source_of("url", server)), tmp_path, 2)
    assert message in caught.value.message
    assert caught.value.fix
    assert list(tmp_path.iterdir()) == []


ARCHIVES = {
    "lacks a file": (tar_gz({"README": b"?"}), "the archive does not contain models/Small"),
    "a link": (
        tar_gz({}, {f"models/Small.1024nt/{name}": "/etc/passwd" for name in FILES}),
        "is a link or a folder",
    ),
    "no archive": (
        b"not a tar file at all" * 100,
        "the file is of another type, expected a tar archive",
    ),
    "zip": (b"PK\x03\x04" + bytes(600), "the file is a zip archive, expected a tar archive"),
    "bzip2": (bz2.compress(random.Random(1).randbytes(600)), "the file is bzip2, expected a tar"),
    "xz": (lzma.compress(random.Random(1).randbytes(600)), "the file is xz, expected a tar"),
    "a page": (b"<html>Sign in</html>" * 50, "the file is a page, expected a tar archive"),
    "half a header": (b"models/Small.1024nt/", "cannot be fetched: the archive is damaged"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_is_not_as_the_entry_says(name, tmp_path):
    content, message = ARCHIVES[name]
    shelf = Shelf({"/records/7995778/files/models.tar.gz": content})
    with loopback(shelf.handler()) as server, pytest.raises(WeightsRefused) as caught:
        provide_weights(registered_weights(source_of("archive", server)), tmp_path, 2)
    assert message in caught.value.message
    by_hand = "correct the entry of the model registry, or fetch the files by hand"
    assert caught.value.fix.startswith(by_hand) == ("expected a tar" in message)


def test_an_archive_that_breaks_off(tmp_path):
    shelf = Shelf(dict(PLACES["archive"]), break_after=150)
    with loopback(shelf.handler()) as server:
        weights = registered_weights(source_of("archive", server))
        with pytest.raises(WeightsRefused, match="cannot be fetched: "):
            provide_weights(weights, tmp_path, 2)
        assert provide_weights(weights, tmp_path, 2) == DIGESTS


def test_a_file_without_a_number_is_fetched_by_hand(tmp_path):
    with loopback(Shelf(dict(PLACES["gdrive"])).handler()) as server:
        source = source_of("gdrive", server, ids={"config.json": "id-of-config"})
        with pytest.raises(UsageProblem) as caught:
            provide_weights(registered_weights(source), tmp_path, 2)
        assert caught.value.message.startswith(
            "the commitment has no address of model.safetensors, only gdrive "
        )
        (tmp_path / "model.safetensors").write_bytes(SOUND)
        assert provide_weights(registered_weights(source), tmp_path, 2) == DIGESTS


@pytest.mark.parametrize("name", ["../../escaped.txt", "/etc/x", "a/../../b", "", "a b"])
def test_a_name_that_leaves_the_folder_is_refused(name, tmp_path):
    weights = Weights(
        kind="url",
        location="https://example.org",
        revision=None,
        files={name: "0" * 64},
        addresses={name: "https://example.org/x"},
    )
    with pytest.raises(WeightsRefused, match="is not the name of a file below the folder"):
        provide_weights(weights, tmp_path / "weights", 2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with loopback(Shelf(dict(PLACES["url"])).handler()) as server, pytest.raises(GenebError) as e:
        provide_weights(registered_weights(source_of("url", server)), tmp_path / "file/weights", 2)
    assert f"{tmp_path}/file/weights/config.json" in e.value.message
    assert "--weights DIR" in e.value.fix


def test_an_address_without_https_is_refused(tmp_path):
    with pytest.raises(WeightsRefused, match="is not an https address of a public"):
        download("http://example.org/x", Path(tmp_path / "x"), "0" * 64, WEIGHTS_DOWNLOAD)
