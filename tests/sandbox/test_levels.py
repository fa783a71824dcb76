"""The ladder: what is asked for, what the machine lacks, what is left behind."""

import contextlib
import dataclasses
import json
import os
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from geneb_ci.common.errors import (
    Exit,
    LeftOver,
    LimitExceeded,
    SandboxUnavailable,
    UsageProblem,
)
from geneb_ci.sandbox import mounts
from geneb_ci.sandbox.launch import sandbox_facts, start_sandboxed
from geneb_ci.sandbox.levels import open_sandbox, trial_failure
from geneb_ci.sandbox.limits import MIB, Limits
from geneb_ci.sandbox.processes import descendants, save_namespaces
from geneb_ci.sandbox.run import (
    ExtractorSpec,
    run_escape_suite,
    run_in_sandbox,
    worker_options,
)
from reference_harness.cli.main import main
from tests import forked
from tests.paths import PUBLIC, ROOT
from tests.sandbox.conftest import HOSTILE, SEQUENCES, SMALL, hostile

KMER = ExtractorSpec("builtin:kmer", options={"k": "1"})
ROWS = [[0.3, 0.3, 0.2, 0.2], [0, 0, 0, 1], [2 / 7, 2 / 7, 2 / 7, 1 / 7]]


def test_the_same_numbers_come_out_of_every_level(sandbox, tmp_path):
    inside = run_in_sandbox(SEQUENCES, KMER, sandbox, SMALL).values
    with open_sandbox(0, i_wrote_this_code=True, folder=tmp_path / "scratch") as nothing:
        plain = run_in_sandbox(SEQUENCES, KMER, nothing, SMALL).values
        assert run_escape_suite(nothing) == []
    assert inside.tolist() == plain.tolist()
    assert inside.dtype == "<f4"
    assert inside.shape == (3, 4)
    assert abs(inside - ROWS).max() < 1e-6


def test_packages_of_a_models_own_environment_come_first(bubblewrap_sandbox, tmp_path):
    """The extractor's module returns the number of the package that it imports.

    The package prints what the worker prints of its progress, which is told while it runs.
    """
    (tmp_path / "packages").mkdir()
    source = "WORDS = 3\nprint('letters embedded: 18\\nletters embedded: many', flush=True)\n"
    (tmp_path / "packages/tinyformers.py").write_text(source, encoding="utf-8")
    spec = dataclasses.replace(hostile("imports", "OwnPackage"), packages=tmp_path / "packages")
    letters: list[int] = []
    sandbox_run = run_in_sandbox(SEQUENCES, spec, bubblewrap_sandbox, SMALL, letters.append)
    assert sandbox_run.values.tolist() == [[3]] * 3
    assert letters == [18]


def test_threads_of_a_model_sleep_where_they_wait(monkeypatch):
    """Those that spin took ten times as long on busy cores, in the sandbox and outside."""
    monkeypatch.setattr("os.environ", {})
    monkeypatch.setattr("sys.argv", ["geneb-harness", "--version"])
    with contextlib.suppress(SystemExit):
        main()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert mounts.sandbox_view({}, {}).environment["OMP_WAIT_POLICY"] == "PASSIVE"


def test_the_trial_imports_what_a_run_imports(sandbox, tmp_path, monkeypatch):
    """Python's own packages, which a machine may have or lack, decide nothing."""
    (tmp_path / "numpy.py").write_text('raise ImportError("the packages of the view")')
    monkeypatch.setattr(mounts, "_package_folders", lambda: [str(tmp_path)])
    assert str(trial_failure(sandbox)).endswith("ImportError: the packages of the view")


def test_the_facts_for_the_record(bubblewrap_sandbox):
    escapes = run_escape_suite(bubblewrap_sandbox)
    facts = sandbox_facts(bubblewrap_sandbox, escapes, SMALL, 2048)
    assert (facts.level, facts.kind, facts.gpu) == (2, "bubblewrap", False)
    assert facts.escapes == escapes
    assert facts.limits == {
        "seconds": 30, "total_seconds": 86_400, "token_budget": 2048, "memory_mib": 512,
        "processes": 48, "tmp_mib": 16, "log_kib": 256,
        "open_files": 4096, "width": 60_000, "result_mib": 1, "host_floor_mib": 256,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (0, "level 0 is not a sandbox: the extractor can do whatever you can"),
        (4, "level 4 needs a machine that is deleted after the audit"),
        (5, "sandbox level 5, expected 0 to 4"),
    ],
)
def test_a_level_that_needs_a_declaration(tmp_path, level, message):
    with pytest.raises(UsageProblem) as caught, open_sandbox(level, folder=tmp_path / "scratch"):
        pass
    assert caught.value.message == message
    assert not (tmp_path / "scratch").exists()


def test_the_declaration_makes_level_two_level_four(tmp_path, bubblewrap_sandbox):
    """The scratch folder goes with the audit."""
    assert bubblewrap_sandbox.level == 2
    with open_sandbox(throw_away_machine=True, folder=tmp_path / "scratch") as sandbox:
        assert (sandbox.level, sandbox.kind) == (4, "bubblewrap")
        run_escape_suite(sandbox)
        assert sandbox.scratch.stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "scratch").exists()


def refusing_bwrap(folder: Path) -> None:
    """Put a bwrap first in the path that ends as it does where user namespaces are refused."""
    program = folder / "bwrap"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit\n'
        "echo 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    program.chmod(0o755)


def test_refused_namespaces_are_named_with_both_fixes(tmp_path, monkeypatch):
    refusing_bwrap(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    setting = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns = 1"
    monkeypatch.setattr(mounts, "refusing_settings", lambda: [setting])
    with pytest.raises(SandboxUnavailable) as caught, open_sandbox(2, folder=tmp_path / "scratch"):
        pass
    assert caught.value.exit_code == Exit.NOT_CHECKED
    assert caught.value.message == (
        "sandbox level 2 (bubblewrap) does not work on this machine: "
        f"bwrap: setting up uid map: Permission denied; {setting}"
    )
    assert "AppArmor profile" in caught.value.fix
    assert "--throw-away-machine" in caught.value.fix


def test_a_missing_or_old_bubblewrap_is_named(tmp_path, monkeypatch):
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.4.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="or later is needed, found 'bubblewrap 0"):
        open_sandbox(2, folder=tmp_path / "scratch").__enter__()
    old.unlink()
    with pytest.raises(SandboxUnavailable, match="bwrap is not installed"):
        open_sandbox(2, folder=tmp_path / "scratch").__enter__()
    with pytest.raises(SandboxUnavailable, match="runsc is not installed"):
        open_sandbox(3, folder=tmp_path / "scratch").__enter__()


def test_a_gpu_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(mounts, "GPU_FOLDER", tmp_path)
    with pytest.raises(SandboxUnavailable, match="/dev has no nvidia device"):
        open_sandbox(2, gpu=True, folder=tmp_path / "scratch").__enter__()


def test_a_gpu_whose_driver_does_not_start_is_named_before_a_draw(tmp_path, monkeypatch):
    """Of the two files one is there, so that the sandbox starts; the library of CUDA is missing."""
    monkeypatch.setattr(mounts, "gpu_devices", lambda: ("/dev/null", "/dev/nvidia0"))
    with pytest.raises(SandboxUnavailable, match="the GPU does not work in sandbox") as caught:
        open_sandbox(2, gpu=True, folder=tmp_path / "scratch").__enter__()
    assert "libcuda.so.1" in caught.value.message
    assert "pass --level 2" in caught.value.fix


NAMES_ITSELF = """\
import os
from pathlib import Path
for tid in os.listdir("/proc/self/task"):
    Path(f"/proc/self/task/{tid}/comm").write_text("cuda-thread")
print(Path("/proc/self/comm").read_text().strip())
kernel = [path for path in Path("/proc").iterdir() if path.name[0].isalpha()]
for part in (path for path in kernel if not path.is_symlink()):
    for folder, _, files in os.walk(part):
        for name in files:
            try:
                os.close(os.open(Path(folder, name), os.O_WRONLY | os.O_NONBLOCK))
                print(folder, name)
            except OSError:
                pass
"""


def test_a_process_with_a_gpu_names_its_threads_and_writes_nothing_of_the_kernel(
    bubblewrap_sandbox,
):
    """NVIDIA's driver starts only where it can write /proc/PID/task/TID/comm."""
    with_gpu = dataclasses.replace(bubblewrap_sandbox, devices=("/dev/nvidia0",))
    view = mounts.sandbox_view({}, {})
    inner = [view.python, "-c", NAMES_ITSELF]
    with start_sandboxed(with_gpu, view, Limits(seconds=30), inner) as process:
        output, errors = process.communicate(timeout=30)
    assert (output.decode(), errors.decode()) == ("cuda-thread\n", "")
    assert [escape for escape in run_escape_suite(with_gpu) if not escape.refused] == []


def test_gpu_devices_are_bound_after_dev(tmp_path, monkeypatch):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "sda"):
        (tmp_path / name).touch()
    monkeypatch.setattr(mounts, "GPU_FOLDER", tmp_path)
    devices = mounts.gpu_devices()
    assert [Path(d).name for d in devices] == ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]
    words = mounts.bubblewrap_options(mounts.sandbox_view({}, {}, devices), Limits(), {}, 9)
    assert words.index("--dev") < words.index("--dev-bind-try")
    assert words.count("--dev-bind-try") == 4


def test_the_folder_of_an_earlier_audit_is_refused(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    with pytest.raises(LeftOver, match="is left from an earlier audit"):
        open_sandbox(1, folder=folder).__enter__()
    folder.rmdir()
    folder.symlink_to("/nowhere")
    with pytest.raises(LeftOver):
        open_sandbox(1, folder=folder).__enter__()


@pytest.mark.usefixtures("bubblewrap_sandbox")
def test_processes_of_an_earlier_audit_are_refused(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    command = [
        "bwrap",
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "/bin/sleep",
        "60",
    ]
    with subprocess.Popen(command) as process:
        try:
            while not (
                processes := [
                    process_found
                    for process_found in descendants(process.pid)
                    if process_found.parent != process.pid
                ]
            ):
                time.sleep(0.01)
            save_namespaces(folder, processes)
            with pytest.raises(LeftOver) as caught:
                open_sandbox(2, folder=folder).__enter__()
        finally:
            for process_found in descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):  # the end of pid 1 ends the others
                    os.kill(process_found.pid, 9)
            process.kill()
    assert "processes of another audit run in its sandbox: " in caught.value.message


@pytest.mark.parametrize("sequences", [[], ["ACGT\nACGT"], ["ACGé"], ["AC\0GT"]])
def test_what_is_no_list_of_sequences_is_refused(bubblewrap_sandbox, sequences):
    with pytest.raises(UsageProblem):
        run_in_sandbox(sequences, KMER, bubblewrap_sandbox, SMALL)


@pytest.mark.parametrize("value", [0, -1, True, 1.5])
def test_no_limit_can_be_switched_off(value):
    with pytest.raises(ValueError, match="limit seconds is"):
        Limits(seconds=value)


def test_the_workers_options_are_those_of_the_schema(tmp_path):
    spec = ExtractorSpec("X", HOSTILE / "reach_out.py", weights=tmp_path, options={"layer": "3"})
    document = json.loads(worker_options(spec, SMALL, lambda folder: folder))
    schema = json.loads((ROOT / "schemas" / "worker-options.schema.json").read_bytes())
    jsonschema.validate(document, schema)
    assert document == {
        "schema_version": "1.0",
        "extractor": "/mnt/extractors/reach_out.py:X",
        "name_model": "/mnt/weights",
        "device": "cpu",
        "options": {"layer": "3"},
        "batching": "budget",
        "token_budget": 2048,
        "measure": False,
        "memory_mib": 512,
        "rows": 8,
        "tf32": True,
        "processes": 64,
    }


@pytest.mark.nightly  # in the gate, the limit itself
def test_a_measured_budget_keeps_to_the_memory_of_the_sandbox(bubblewrap_sandbox):
    """All at once would take 360 MiB, of 256 that it may have."""
    sequences = ["ACGT" * 15] * 12
    limits = dataclasses.replace(SMALL, memory_mib=256)
    spec = hostile("take_over", "Grows")
    with pytest.raises(LimitExceeded):
        run_in_sandbox(sequences, spec, bubblewrap_sandbox, limits)
    spec = dataclasses.replace(spec, token_budget=None)
    sandbox_run = run_in_sandbox(sequences, spec, bubblewrap_sandbox, limits)
    assert sandbox_run.values.tolist() == [[15]] * 12
    assert sandbox_run.token_budget in (64, 128, 256)
    assert sandbox_run.peak < 256 * MIB


def test_the_bundle_for_gvisor(tmp_path):
    view = mounts.sandbox_view({mounts.WEIGHTS: tmp_path}, {"/mnt/input/sequences": b"ACGT\n"})
    mounts.gvisor_bundle(tmp_path / "bundle", view, SMALL, ["/usr/bin/true"])
    made = json.loads((tmp_path / "bundle" / "config.json").read_bytes())
    assert made["process"]["args"] == ["/usr/bin/true"]
    assert made["process"]["capabilities"] == {}
    assert made["root"] == {"path": "root", "readonly": True}
    bound = {m["destination"]: m for m in made["mounts"] if m["type"] == "bind"}
    assert all("ro" in value["options"] for value in bound.values())
    assert Path(bound["/mnt/input/sequences"]["source"]).read_bytes() == b"ACGT\n"
    assert {"/usr", "/mnt/weights", "/mnt/harness/reference_harness"} <= set(bound)
    words = mounts.gvisor_command(tmp_path / "bundle", gpu=True)
    assert {"--network=none", "--nvproxy=true", "--host-uds=none"} <= set(words)


@pytest.mark.usefixtures("bubblewrap_sandbox")
def test_the_doctor_says_what_there_is():
    done = forked.run("geneb_ci", "doctor", cwd=PUBLIC)
    assert done.returncode == 0, done.stderr
    assert "  2  bubblewrap: yes\n" in done.stdout
    assert "public beacon: not tested (pass --network)\n" in done.stdout
