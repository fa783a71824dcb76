"""One worker: a clone of the repository, and the server that runs tests in it."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.mutants import clone
from tools.mutants.server import HEAVY


class Server:
    """A process that runs tests in a folder, and that folder's files."""

    root: Path

    def __init__(self, command: Sequence[str], root: Path, environment: Mapping[str, str]) -> None:
        self.root = root
        self._written = 0
        self._server = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def _answer(self) -> str:
        assert self._server.stdout is not None  # noqa: S101 (it was asked for)
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError("the test server ended: run `make mutants` again")
        return str(json.loads(line)["end"])

    def run(
        self,
        files: Sequence[str],
        tests: Sequence[str] = (),
        *,
        marks: bool = False,
        seconds: float,
        log: Path | None = None,
    ) -> dict[str, Any]:
        """Run tests of some files; return what became of them, or {} when they ran too long.

        `seconds` is what they take when nothing hangs, on an idle machine.
        """
        result = self.root.parent / f"{self.root.name}-result.json"
        job = {
            "files": list(files),
            "tests": list(tests),
            "marks": marks,
            "cpu": int(20 + 6 * seconds),
            "wall": 60 + 20 * seconds,
            "result": str(result),
            "log": str(log) if log else "",
        }
        assert self._server.stdin is not None  # noqa: S101
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        self._answer()
        found: dict[str, Any] = json.loads(result.read_text()) if result.is_file() else {}
        return found

    def write(self, file: str, source: bytes) -> None:
        """Write a file, with a time of its own: bytecode is cached by whole seconds."""
        path = self.root / file
        path.write_bytes(source)
        self._written += 1
        when = 1_000_000_000 + self._written
        os.utime(path, (when, when))

    def close(self) -> None:
        """End the server."""
        with self._server:  # which closes the pipes, and waits
            self._server.terminate()


class Worker(Server):
    """A server in a clone of the repository."""

    def __init__(self, name: str) -> None:
        root = clone.make(name)
        command = [clone.python(root), "-m", "tools.mutants.server", *HEAVY]
        super().__init__(command, root, clone.environment())
