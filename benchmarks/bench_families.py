"""Each way of loading a published model, on a lookalike: run, and audited as a 1.0 row.

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

NEEDS_PACKAGE = ("Enformer",)
"""Families whose class is in a package, which a test imitates."""
SECONDS_MAX = 900
"""Most seconds of one command; most take less than a tenth of this on two busy cores."""


def text_of(value: Any) -> str:
    """Return an option's value as an entry writes it."""
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def started_by(pid: int) -> set[int]:
    """Return the ids of a process and of all its descendants."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


class OwnPlace(MiniRepository):
    """A repository of one family, whose commands end in time or are killed."""

    def run(
        self, module: str, *arguments: str, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the installation, and keep what it says.

        Raise TimeoutExpired if it takes too long, after killing its group and every session that
        one of its processes began.
        """
        command = [sys.executable, "-m", module, *arguments]
        process = subprocess.Popen(
            command, cwd=self.root, env=self.environment, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            for pid in started_by(process.pid):
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.killpg(os.getpgid(pid), signal.SIGKILL)
            process.communicate()
            raise
        done = subprocess.CompletedProcess(command, process.returncode, out, err)
        if check:
            done.check_returncode()
        return done


def place_of(folder: Path) -> OwnPlace:
    """Return a new repository in which one task is drawn, in the 1-shot regime."""
    place = OwnPlace(folder, drawn=1)
    for name in ("scratch", "cache"):
        (folder / name).mkdir()
    place.environment |= {
        "TMPDIR": str(folder / "scratch"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    policy = place.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace('["full", "10shot", "1shot"]', '["1shot"]'), encoding="utf-8")
    (place.root / "leaderboard/policy/models").mkdir()
    return place


def cpu_seconds() -> float:
    """Return the processor time of all commands that have ended; it depends little on others."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(place: OwnPlace, family: str) -> list[str]:
    """Run, check and audit one family; return a line of the table."""
    before = cpu_seconds()
    name = re.sub(r"\W+", "-", family.lower())
    folder = place.root.parent / name
    folder.mkdir()
    FAMILIES[family].save(folder)
    options = {key: text_of(value) for key, value in FAMILIES[family].options.items()}
    words = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    submission = place.root / "submissions" / f"{name}.json"
    done = place.run(
        *("reference_harness", "run", "--extractor", "huggingface", "--model", str(folder)),
        *words,
        *("--output", f"{name}.record.json", "--model-id", name),
        *("--submission", str(submission), "--submitted-by", "a bench"),
        check=False,
    )
    if done.returncode:
        return [family, done.stderr.strip().splitlines()[-1], "", ""]
    record = json.loads((place.root / f"{name}.record.json").read_bytes())
    rows = sum(one["distinct_sequences"] for one in record["tasks"].values())
    document = json.loads(submission.read_bytes())
    old = {key: document[key] for key in FORMAT_1_0} | {"schema_version": "1.0"}
    submission.write_text(json.dumps(old), encoding="utf-8")
    digests = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    dtype = options.get("dtype", "float32")
    (place.root / f"leaderboard/policy/models/{name}.toml").write_text(
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
        done = place.run("geneb_ci", "audit", *command, check=False)
        said = (done.stdout + done.stderr).strip().splitlines()
        verdict = next(
            (word for line in said for word in ("agrees", "differs") if word in line), ""
        )
        if done.returncode:
            verdict = f"{command[0]}: {verdict or said[-1]}"
            break
    return [family, f"{rows} rows", verdict, f"{cpu_seconds() - before:.0f} s"]


def main() -> None:
    """Print a line for each family."""
    print("| family | run | audit | CPU time |\n|---|---|---|---:|")
    for family in sys.argv[1:] or [one for one in FAMILIES if one not in NEEDS_PACKAGE]:
        with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
            try:
                found = measured(place_of(Path(folder)), family)
            except subprocess.TimeoutExpired as error:
                found = [family, "", f"{error.cmd[2:5]} took over {error.timeout:.0f} s", ""]
        print("|", " | ".join(found), "|", flush=True)


if __name__ == "__main__":
    main()
