"""Environments of jobs: a lock is really installed once; repeats are hard links to its files.

The result of an install step depends only on the interpreter, the locks, the installer, the step's
script and the folder. Each job of a rehearsal runs in the same folder, as on a hosted runner, so if
all of these are equal, the step is not run again. If a job has written into one of these files in
the meantime, the rehearsal fails.
"""

import hashlib
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

Facts = set[tuple[str, int, int]]
"""Name, size in bytes and time of change in ns of each file, except of Python's bytecode."""
CURRENT_INTERPRETER = Path(sys.executable)
"""The interpreter that runs the rehearsal itself."""
_INSTALLS = re.compile(r"tools/install-locked\b")


@dataclass
class Environments:
    """The environments of one rehearsal."""

    folder: Path
    jobs: dict[str, str] = field(default_factory=dict)
    """Name of the first job that ran an install step, by the step's key."""
    facts: dict[str, Facts] = field(default_factory=dict)
    """Facts of the files that an install step created, by the step's key."""

    def create(self, interpreter: Path, folder: Path, *, pip: bool = True) -> None:
        """Create an empty environment in a folder, or link it from an earlier equal one."""
        digest = hashlib.sha256(f"{interpreter} {folder}".encode()).hexdigest()
        if self.restore(digest, [folder]) is None:
            options = [] if pip else ["--without-pip"]
            subprocess.run([interpreter, "-I", "-m", "venv", *options, folder], check=True)
            self.keep(digest, "", [folder])

    def borrow(self, environment: Path, root: Path) -> None:
        """Let an environment use the packages of this program and the code of a checkout."""
        if not environment.exists():
            self.create(CURRENT_INTERPRETER, environment, pip=False)
        (packages,) = environment.glob("lib/python*/site-packages")
        paths = f"{root}\n{sysconfig.get_path('purelib')}\n"
        (packages / "geneb-ci.pth").write_text(paths, encoding="utf-8")

    @staticmethod
    def key(script: str, root: Path, inputs: list[str]) -> str | None:
        """Return a digest of all that an install step depends on; None for any other step."""
        if not _INSTALLS.search(script):
            return None
        digest = hashlib.sha256("\0".join([script, *inputs]).encode())
        for path in [root / "tools/install-locked", *sorted((root / "requirements").glob("*.txt"))]:
            digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def keep(self, digest: str, job: str, folders: list[Path]) -> None:
        """Store what an install step created in folders, under its key and the name of its job."""
        for number, folder in enumerate(folders):
            if folder.exists():
                _link(folder, self.folder / digest / str(number))
        self.jobs[digest], self.facts[digest] = job, _facts(self.folder / digest)

    def restore(self, digest: str, folders: list[Path]) -> str | None:
        """Restore what an install step created in folders; return the name of its job.

        Return None if no job ran such a step. Raises RuntimeError if a job has changed one of the
        files since.
        """
        if digest not in self.jobs:
            return None
        if changed := _facts(self.folder / digest) ^ self.facts[digest]:
            jobs = sorted({job for job, *_ in changed})
            raise RuntimeError(f"a job wrote into its environment: {', '.join(jobs[:3])}")
        for number, folder in enumerate(folders):
            if (stored := self.folder / digest / str(number)).exists():
                shutil.rmtree(folder, ignore_errors=True)
                _link(stored, folder)
        return self.jobs[digest]


def _facts(folder: Path) -> Facts:
    files = (path for path in folder.rglob("*") if path.suffix != ".pyc")
    statuses = ((str(path.relative_to(folder)), path.lstat()) for path in files)
    return {(name, s.st_size, s.st_mtime_ns) for name, s in statuses if stat.S_ISREG(s.st_mode)}


def _link(tree: Path, copy: Path) -> None:
    """Copy a tree by hard links."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-al", tree, copy], check=True)
