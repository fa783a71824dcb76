"""Writing, pushing, pulling and verifying a receipt, killed at ten moments each, or at two.

Whatever is there after a kill is right or not taken, and the same command goes on.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests import forked
from tests.forked import Started
from tests.harness.support import Harness
from tests.loopback import loopback
from tests.publish.command import environment, start
from tests.publish.conftest import hub
from tests.publish.hub import WRITER, Hub
from tests.receipt import slow_scores
from tests.receipt.test_push_pull import NAME, RESOURCE, files_of, served
from tests.receipt.written import MODEL, UNBOXED, UNSCALED_MIN, Written, small_tasks

__all__ = ["hub"]  # a fixture: pytest finds it by its name here
SLOW = Path(slow_scores.__file__)
PATIENCE = 60
"""Seconds for one command of a busy machine."""

Moment = tuple[str, str]
"""A step of the Hub, and when in it."""


def killed(moments: Sequence[object], *places: int) -> pytest.MarkDecorator:
    """Kill at the moments in these places of the list, and by night at all of them."""
    some = [moments[index] for index in places]
    night = pytest.param(moments, id="all", marks=pytest.mark.nightly)
    return pytest.mark.parametrize("moments", [pytest.param(some, id="some"), night])


def killed_at(hub: Hub, moment: Moment, begin: Callable[[], Started]) -> None:
    """Begin a command and kill it at a moment."""
    begun, dead = threading.Event(), threading.Event()

    def kill(step: str, when: str) -> None:
        if (step, when) == moment and not dead.is_set():
            begun.wait(PATIENCE)
            process.kill()
            process.wait(PATIENCE)
            dead.set()

    hub.watch = kill
    process = begin()
    begun.set()
    process.communicate(timeout=PATIENCE)
    assert dead.wait(PATIENCE), moment
    assert process.returncode == -signal.SIGKILL
    hub.watch = lambda _step, _when: None


PUSHED: list[Moment] = [
    *(("info", "before"), ("info", "after"), ("preupload", "before"), ("preupload", "after")),
    *(("lfs-batch", "before"), ("lfs-batch", "half"), ("lfs-put", "before"), ("lfs-put", "after")),
    *(("commit", "before"), ("info", "before")),
]
"""What the Hub was sent has its effect, whoever is dead by then: the last kill is after the commit,
and before the location is written."""


@killed(PUSHED, -2, -1)
def test_a_push_that_is_killed_goes_on(
    hub: Hub, of_small: Written, tmp_path: Path, moments: list[Moment]
) -> None:
    written = of_small.copied(tmp_path / "place")
    repo = hub.create(RESOURCE)
    repo.lfs_over = 20_000
    env = environment(hub, tmp_path / "home", HF_TOKEN=WRITER, HF_HUB_DISABLE_XET="1")
    words = ("receipt", "push", written.file.name, "--receipt", "receipt", "--repo", NAME)

    def begin() -> Started:
        return start(*words, *written.options[2:], cwd=written.folder, env=env)

    before, right = written.file.read_bytes(), files_of(written.receipt)
    committed = False
    for moment in moments:
        killed_at(hub, moment, begin)
        assert written.file.read_bytes() == before
        assert files_of(written.receipt) == right
        committed, end = committed or moment[0] == "commit", time.monotonic() + PATIENCE
        while committed and len(repo.commits) == 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(repo.commits) == 1 + committed
    output, errors = begin().communicate(timeout=PATIENCE)
    assert errors == "0 files of 5, 404 embeddings in all; 0 bytes to send\n"
    assert output.splitlines()[0] == f"{RESOURCE}: nothing changed"
    assert {name: raw for name, raw in repo.head.tree.items() if name in right} == right
    assert written.document["receipt"]["location"]["revision"] == repo.head.oid
    assert len(repo.commits) == 2


PULLED: list[Moment] = [
    (step, when) for step in ("resolve", "cas-bridge") for when in ("before", "after", "half")
]


@killed([*PULLED, *PULLED[:4]], 5, 9)
def test_a_pull_that_is_killed_goes_on(
    hub: Hub, of_small: Written, tmp_path: Path, moments: list[Moment]
) -> None:
    right = files_of(of_small.receipt)
    repo = hub.create(RESOURCE, right)
    repo.lfs_over = 20_000
    path = tmp_path / "place"
    env = environment(hub, tmp_path / "home")
    words = ("receipt", "pull", str(of_small.file), "--output", str(path), "--mirror", NAME)

    def begin() -> Started:
        return start(*words, *of_small.options[2:], cwd=tmp_path, env=env)

    for number, moment in enumerate(moments):
        if number == len(moments) // 2:  # the first file is whole by now, the second half there
            path.mkdir(exist_ok=True)
            (path / f"{UNSCALED_MIN[0]}.f16").write_bytes(right[f"{UNSCALED_MIN[0]}.f16"])
            (path / f"{UNSCALED_MIN[0]}.f16.part").unlink(
                missing_ok=True
            )  # renamed by a whole download
            (path / f"{UNSCALED_MIN[1]}.f16.part").write_bytes(
                right[f"{UNSCALED_MIN[1]}.f16"][:20_000]
            )
        killed_at(hub, moment, begin)
        for name, raw in files_of(path).items() if path.exists() else ():
            if name.endswith(".f16"):
                assert raw == right[name], "what has its name is whole"
    output, errors = begin().communicate(timeout=PATIENCE)
    fetched = "4 files, and predictions.bin, each with the sha256 that the receipt states"
    summary = f"{path}: {fetched}\n"
    assert output.startswith(f"{summary}next: geneb-ci receipt verify "), errors
    assert files_of(path) == right


ORDER = sorted(UNSCALED_MIN)
"""Tasks as `data define` lists them."""
VERIFIED = [
    "embeddings of 256 numbers",
    *(text for task in ORDER for text in (f"fetching {task}", f": {task}")),
    f"of 4: {ORDER[-1]}",
]
"""Text of the line at which a verification is killed; at the last one, while a task is scored.
A file that is there is not fetched again, so that line comes first."""


@killed(VERIFIED, -1)
def test_a_verification_that_is_killed_goes_on(
    of_small: Written, tmp_path: Path, moments: list[str]
) -> None:
    assert ORDER[-1] == slow_scores.TASK
    right = files_of(of_small.receipt)
    path, scratch = tmp_path / "cache", tmp_path / "scratch"
    scratch.mkdir()  # what is killed leaves a folder
    env = os.environ | {"TMPDIR": str(scratch)}
    with loopback(served(of_small).handler()) as server:
        words = (
            *("receipt", "verify", str(of_small.file), "--mirror", f"{server}/rows"),
            *("--cache", str(path), *of_small.options, "--format", "json"),
        )
        for stage in moments:
            # The harness is a process of its own by night, and where it is at work.
            before = None if moments == VERIFIED else UNBOXED
            if stage is VERIFIED[-1]:
                before = SLOW
            process = forked.start("geneb_ci", *words, cwd=tmp_path, env=env, before=before)
            for line in process.lines():
                if stage in line:
                    if stage is VERIFIED[-1]:
                        time.sleep(0.2)  # while the last task is scored
                    process.kill()
                    break
            output, _ = process.communicate(PATIENCE)
            assert (process.returncode, output) == (-signal.SIGKILL, ""), stage
            for name, raw in files_of(path).items() if path.exists() else ():
                if name.endswith(".f16"):
                    assert raw == right[name]
        process = forked.start("geneb_ci", *words, cwd=tmp_path, before=UNBOXED)
        output, errors = process.communicate(PATIENCE)
    assert process.returncode == 0, errors
    assert json.loads(output)["cells"] == {"computed": 12, "equal": 12, "filled": 0}
    assert ".f16" not in errors
    endings = (".f16", "predictions.bin")
    assert files_of(path) == {name: raw for name, raw in right.items() if name.endswith(endings)}


@pytest.fixture
def whole(of_small: Written) -> dict[str, bytes]:
    """What a run that nobody kills writes."""
    return files_of(of_small.receipt)


KILLED = """
import os, re, signal, sys
from reference_harness.cli.main import main

def kill(event, arguments):
    if event == "os.rename" and re.search(os.environ["KILL_AT"], os.fspath(arguments[1])):
        os.killpg(0, signal.SIGKILL)

sys.addaudithook(kill)
main()
"""
"""Kills a command with all its processes when a file is whole and about to have its name."""
WRITTEN = [
    r"cache/",
    *(
        part
        for task in sorted(UNSCALED_MIN)
        for part in (rf"receipt/{task}\.f16$", rf"\.partial/.*{task}")
    ),
    r"predictions\.bin$",
    r"record\.json$",
    rf"{MODEL}\.json$",
]
"""Files in the order in which a run of one worker writes them."""


@killed(WRITTEN, 3, -2)
def test_a_run_that_is_killed_while_it_writes_goes_on(
    of_small: Written, whole: dict[str, bytes], tmp_path: Path, moments: list[str]
) -> None:
    options = small_tasks(tmp_path / "data")
    harness, receipt = Harness(tmp_path), tmp_path / "receipt"
    words = (
        *("run", "--model-id", MODEL, "--output", "record.json", "--quiet", "--jobs", "1"),
        *("--submission", f"{MODEL}.json", "--receipt", "receipt", *options),
    )
    for number, moment in enumerate(moments):
        harness.environment["KILL_AT"] = moment
        process = harness.start(*words, *(["--resume"] if number else []), code=KILLED)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL, (moment, errors)
        for name, raw in files_of(receipt).items() if receipt.exists() else ():
            assert name not in whole or raw == whole[name]
        assert not (tmp_path / f"{MODEL}.json").exists()
    done = harness(*words, "--resume")
    assert (done.returncode, done.stderr) == (0, "")
    assert {name: (receipt / name).read_bytes() for name in whole} == whole
    receipt_document = json.loads((tmp_path / f"{MODEL}.json").read_text())["receipt"]
    assert receipt_document["tasks"] == of_small.document["receipt"]["tasks"]
