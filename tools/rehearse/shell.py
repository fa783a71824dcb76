"""Runs the script of a step in the shell that a runner would use, and reads what it outputs."""

import contextlib
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.rehearse.workflow import Unsound

# The runner's command for each value of `shell:`; without one, it is bash without pipefail.
SHELLS = {
    "": ["bash", "-e"],
    "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
    "sh": ["sh", "-e"],
}
_HEREDOC = re.compile(r"([A-Za-z_][\w-]*)<<(\S+)")


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a script."""

    code: int
    output: str


def run(
    script: str, shell: str, file: Path, env: dict[str, str], cwd: Path, limit_s: float
) -> Ended:
    """Run a script in a process group of its own; exit code 124 means it took too long."""
    if shell not in SHELLS:
        raise Unsound(f"the rehearsal does not know the shell {shell!r}")
    file.write_text(script + "\n", encoding="utf-8")
    log = file.with_suffix(".log")
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*SHELLS[shell], str(file)],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    output = log.read_text(encoding="utf-8", errors="replace")
    return Ended(code, output + ("\nstopped: it took longer than its limit" if code == 124 else ""))  # noqa: PLR2004


def values(file: Path) -> dict[str, str]:
    """Return the values by name that a step wrote to GITHUB_OUTPUT or GITHUB_ENV.

    They are lines `name=value`, or here-documents. Raises Unsound if a runner would reject one.
    """
    outputs: dict[str, str] = {}
    lines = iter(file.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if not line:
            continue
        if document := _HEREDOC.fullmatch(line):
            variable, end = document.groups()
            words = []
            for inner in lines:
                if inner == end:
                    break
                words.append(inner)
            else:
                raise Unsound(f"{variable}: the line {end!r} that ends the value is missing")
            outputs[variable] = "\n".join(words)
        elif "=" in line:
            variable, _, found_value = line.partition("=")
            outputs[variable] = found_value
        else:
            raise Unsound(f"expected `name=value`, found {line[:80]!r}")
    return outputs
