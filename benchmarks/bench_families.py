"""Run and audit a lookalike of each family of published models, each of which loads differently.

The lookalike is written from its configuration with random weights, run by the harness, its
submission cut down to format 1.0, described by an entry, committed to, drawn and rerun in the
sandbox from the folder of its files. Each family has a repository, a cache and a scratch folder of
its own, and a command that does not end is killed with all that it started: no family can disturb
the next one. The properties are those that `tests/harness/extractors/test_lookalikes.py` checks of
the same lookalikes. `python -m benchmarks.bench_families [FAMILY]...`.
"""

import contextlib
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.audit.file_place import GO
from tests.audit.test_by_entry import FORMAT_1_0, table
from tests.harness.extractors.families import FAMILIES
from tools.demo_audit import MiniRepository

PACKAGE_FAMILIES = ("Enformer",)
"""Families whose class is in a package, which a test imitates."""
SECONDS_MAX = 900
"""Most seconds of one command; most take less than a tenth of this on two busy cores."""


def option_text(value: Any) -> str:
    """Return an option's value as an entry writes it."""
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def descendant_processes(pid: int) -> set[int]:
    """Return the ids of a process and of all its descendants."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
    processes = {pid}
    while (
        children := {child for child, parent in parents.items() if parent in processes} - processes
    ):
        processes |= children
    return processes


class FamilyRepository(MiniRepository):
    """A repository of one family, whose commands end in time or are killed."""

    def run(
        self, module: str, *arguments: str, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the installation, and return its exit code and output.

        Raise TimeoutExpired if it takes too long, after killing its group and every session that
        one of its processes began.
        """
        command = [sys.executable, "-m", module, *arguments]
        process = subprocess.Popen(
            command, cwd=self.root, env=self.environment, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            for pid in descendant_processes(process.pid):
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.killpg(os.getpgid(pid), signal.SIGKILL)
            process.communicate()
            raise
        result = subprocess.CompletedProcess(command, process.returncode, output, errors)
        if check:
            result.check_returncode()
        return result


def family_repository(folder: Path) -> FamilyRepository:
    """Return a new repository in which one task is drawn, in the 1-shot regime."""
    repository = FamilyRepository(folder, drawn=1)
    for name in ("scratch", "cache"):
        (folder / name).mkdir()
    repository.environment |= {
        "TMPDIR": str(folder / "scratch"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    policy = repository.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace('["full", "10shot", "1shot"]', '["1shot"]'), encoding="utf-8")
    (repository.root / "leaderboard/policy/models").mkdir()
    return repository


def cpu_seconds() -> float:
    """Return the processor time of all commands that have ended; it depends little on others."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def family_line(repository: FamilyRepository, family: str) -> list[str]:
    """Run, check and audit one family; return a line of the table."""
    seconds_before = cpu_seconds()
    name = re.sub(r"\W+", "-", family.lower())
    folder = repository.root.parent / name
    folder.mkdir()
    FAMILIES[family].save(folder)
    options = {key: option_text(value) for key, value in FAMILIES[family].options.items()}
    option_arguments = [
        word for key, value in options.items() for word in ("--option", f"{key}={value}")
    ]
    submission = repository.root / "submissions" / f"{name}.json"
    run = repository.run(
        *("reference_harness", "run", "--extractor", "huggingface", "--model", str(folder)),
        *option_arguments,
        *("--output", f"{name}.record.json", "--model-id", name),
        *("--submission", str(submission), "--submitted-by", "a bench"),
        check=False,
    )
    if run.returncode:
        return [family, run.stderr.strip().splitlines()[-1], "", ""]
    record = json.loads((repository.root / f"{name}.record.json").read_bytes())
    sequence_count = sum(
        task_record["distinct_sequences"] for task_record in record["tasks"].values()
    )
    document = json.loads(submission.read_bytes())
    old_document = {key: document[key] for key in FORMAT_1_0} | {"schema_version": "1.0"}
    submission.write_text(json.dumps(old_document), encoding="utf-8")
    digests = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    dtype = options.get("dtype", "float32")
    (repository.root / f"leaderboard/policy/models/{name}.toml").write_text(
        'schema_version = "1.0"\n'
        + table("weights", {"kind": "url", "location": f"https://example.org/{name}"})
        + table("weights.files", digests)
        + table("run", {"extractor": "builtin:huggingface", "dtype": dtype})
        + table("run.options", options),
        encoding="utf-8",
    )
    commands = (
        ("commit", str(submission), "--output", f"{name}.c.json"),
        ("plan", f"{name}.c.json", *GO, "--output", f"{name}.p.json"),
        ("run", f"{name}.p.json", "--weights", str(folder), "--key", "key.pem"),
    )
    verdict = ""
    for command in commands:
        run = repository.run("geneb_ci", "audit", *command, check=False)
        output_lines = (run.stdout + run.stderr).strip().splitlines()
        verdict = next(
            (word for line in output_lines for word in ("agrees", "differs") if word in line), ""
        )
        if run.returncode:
            verdict = f"{command[0]}: {verdict or output_lines[-1]}"
            break
    return [family, f"{sequence_count} rows", verdict, f"{cpu_seconds() - seconds_before:.0f} s"]


def main() -> None:
    """Print a line for each family."""
    print("| family | run | audit | CPU time |\n|---|---|---|---:|")
    for family in sys.argv[1:] or [family for family in FAMILIES if family not in PACKAGE_FAMILIES]:
        with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
            try:
                cells = family_line(family_repository(Path(folder)), family)
            except subprocess.TimeoutExpired as error:
                cells = [family, "", f"{error.cmd[2:5]} took over {error.timeout:.0f} s", ""]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
