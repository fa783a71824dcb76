"""The escape suite: all refused as the sandbox is, and each guard that is taken away is noticed."""

import itertools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from geneb_ci.common.errors import SandboxLeaks, SandboxUnavailable
from geneb_ci.sandbox import mounts, seccomp
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.run import ESCAPE_NAMES, refuse_leaks, run_escape_suite

Options = list[str]


def test_every_attempt_is_refused(sandbox: Sandbox):
    escapes = run_escape_suite(sandbox)
    assert [escape.name for escape in escapes] == list(ESCAPE_NAMES)
    assert len(ESCAPE_NAMES) >= 20
    assert [(escape.name, escape.detail) for escape in escapes if not escape.refused] == []
    refuse_leaks(sandbox, escapes)


def without(*words: str) -> Callable[[Options], Options]:
    def change(options: Options) -> Options:
        assert set(words) <= set(options)
        return [word for word in options if word not in words]

    return change


def without_pair(first: str, second: str) -> Callable[[Options], Options]:
    def change(options: Options) -> Options:
        pairs = list(itertools.pairwise(options))
        at = pairs.index((first, second))
        return options[:at] + options[at + 2 :]

    return change


def with_more(*words: str) -> Callable[[Options], Options]:
    def change(options: Options) -> Options:
        at = options.index("--tmpfs") - 2  # where all of /dev is there, and / not yet read-only
        return [*options[:at], *words, *options[at:]]

    return change


def with_host_namespaces(options: Options) -> Options:
    return ["--unshare-uts", *without("--unshare-all")(options)]


def unbounded_tmp(options: Options) -> Options:
    at = options.index("--size")
    return options[:at] + options[at + 2 :]


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        (with_more("--share-net"), {"tcp-to-the-host", "abstract-socket"}),
        (with_host_namespaces, {"tcp-to-the-host", "host-processes"}),
        (without_pair("--remount-ro", "/"), {"write-system"}),
        (without_pair("--remount-ro", "/dev"), {"write-system"}),
        (unbounded_tmp, {"fill-tmp"}),
        (with_more("--ro-bind", "/etc", "/etc"), {"host-files"}),
    ],
    ids=["network", "namespaces", "root-writable", "dev-writable", "tmp-unbounded",
         "etc"],
)  # fmt: skip
def test_a_missing_guard_is_noticed(bubblewrap_sandbox: Sandbox, monkeypatch, change, noticed):
    sound = mounts.bubblewrap_options
    monkeypatch.setattr(mounts, "bubblewrap_options", lambda *a: change(sound(*a)))
    escapes = run_escape_suite(bubblewrap_sandbox)
    assert noticed <= {escape.name for escape in escapes if not escape.refused}
    with pytest.raises(SandboxLeaks, match="from the sandbox succeeded"):
        refuse_leaks(bubblewrap_sandbox, escapes)


def test_a_writable_folder_of_the_host_is_noticed(bubblewrap_sandbox: Sandbox, monkeypatch):
    change = with_more("--bind", str(bubblewrap_sandbox.scratch), "/var")
    sound = mounts.bubblewrap_options
    monkeypatch.setattr(mounts, "bubblewrap_options", lambda *a: change(sound(*a)))
    open_ones = {
        attempt.name for attempt in run_escape_suite(bubblewrap_sandbox) if not attempt.refused
    }
    (bubblewrap_sandbox.scratch / "written-by-the-escape-suite").unlink()
    assert open_ones == {"planted-label", "write-system"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root could write the host's kernel settings")
def test_a_writable_proc_under_root_is_noticed(bubblewrap_sandbox: Sandbox, monkeypatch):
    sound, change = mounts.bubblewrap_options, without_pair("--remount-ro", "/proc")
    monkeypatch.setattr(mounts, "bubblewrap_options", lambda *a: change(sound(*a)))
    open_ones = {
        attempt.name for attempt in run_escape_suite(bubblewrap_sandbox) if not attempt.refused
    }
    assert "write-kernel-settings" in open_ones


def test_a_missing_filter_is_noticed(sandbox: Sandbox, monkeypatch):
    allow_all = seccomp._INSTRUCTION.pack(seccomp.RETURN, 0, 0, seccomp.ALLOW)
    monkeypatch.setattr(seccomp, "filter_program", lambda: allow_all)
    open_ones = {attempt.name for attempt in run_escape_suite(sandbox) if not attempt.refused}
    assert {"trace", "rare-system-calls"} <= open_ones


def test_a_secret_in_the_launchers_environment_is_noticed(bubblewrap_sandbox, monkeypatch):
    start = subprocess.Popen

    def careless(*words, **options):
        return start(*words, **{**options, "env": dict(os.environ)})

    monkeypatch.setattr(subprocess, "Popen", careless)
    open_ones = {
        attempt.name for attempt in run_escape_suite(bubblewrap_sandbox) if not attempt.refused
    }
    assert open_ones == {"planted-secret"}


def test_an_inherited_descriptor_is_noticed(bubblewrap_sandbox: Sandbox, monkeypatch):
    start = subprocess.Popen

    def careless(*words, pass_fds, **options):
        with Path(os.devnull).open() as more:
            return start(*words, pass_fds=[*pass_fds, more.fileno()], **options)

    monkeypatch.setattr(subprocess, "Popen", careless)
    open_ones = {
        attempt.name for attempt in run_escape_suite(bubblewrap_sandbox) if not attempt.refused
    }
    assert open_ones == {"inherited-descriptors"}


def test_a_suite_that_is_not_whole_is_no_suite(bubblewrap_sandbox: Sandbox):
    escapes = run_escape_suite(bubblewrap_sandbox)
    with pytest.raises(SandboxLeaks, match="escapes were attempted"):
        refuse_leaks(bubblewrap_sandbox, escapes[:-1])
    with pytest.raises(SandboxLeaks, match="0 escapes were attempted"):
        refuse_leaks(bubblewrap_sandbox, [])


def test_nothing_of_ours_is_on_the_command_line(bubblewrap_sandbox: Sandbox, monkeypatch):
    seen = []
    start = subprocess.Popen

    def noted(words, **options):
        seen.append((list(words), options))
        return start(words, **options)

    monkeypatch.setattr(subprocess, "Popen", noted)
    run_escape_suite(bubblewrap_sandbox)
    [(words, options)] = seen
    inner = words[words.index("--args") - 1 :]
    assert [Path(inner[0]).name, inner[1], inner[3]] == ["bwrap", "--args", "--"]
    assert all(word.startswith(("/mnt/", "/usr/", "-")) for word in inner[4:])
    assert options["env"] == {}
    assert options["close_fds"] is True


def test_an_unknown_machine_has_no_filter():
    with pytest.raises(SandboxUnavailable) as caught:
        seccomp.filter_program("riscv64")
    assert (
        caught.value.message
        == "there is no filter of system calls for riscv64, expected x86_64 or aarch64"
    )
