"""Environments of jobs: a lock is really installed once; repeats are hard links to its files.

The result of an install step depends only on the interpreter, the locks, the installer, the step's
script and the folder. Each job of a rehearsal runs in the same folder, as on a hosted runner, so if
all of these are equal, the step is not run again. If a job has written into one of these files in
the meantime, the rehearsal fails.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

CURRENT_INTERPRETER = Path(sys.executable)
"""The interpreter that runs the rehearsal itself."""
_INSTALLS = re.compile(r"tools/install-locked\b")


@dataclass
class StoredEnvironment:
    """The environment that an install step created, and the first job that did."""

    folder: Path
    job: str
    facts: dict[str, tuple[int, int]]

    def hold_clean(self) -> None:
        """Raise RuntimeError if a job has changed one of its files since."""
        current_facts = _facts(self.folder)
        if current_facts != self.facts:
            changed = sorted(
                name for name in self.facts if current_facts.get(name) != self.facts[name]
            )
            raise RuntimeError(f"a job wrote into its environment: {', '.join(changed[:3])}")


@dataclass
class Environments:
    """The environments of one rehearsal."""

    folder: Path
    stored: dict[str, StoredEnvironment] = field(default_factory=dict)
    bases: dict[str, StoredEnvironment] = field(default_factory=dict)

    def bare(self, interpreter: Path, target: Path, *, pip: bool = True) -> None:
        """Create an empty environment in a folder; a repeated one is linked from the first.

        Raises RuntimeError if a job has changed one of its files since.
        """
        key = hashlib.sha256(f"{interpreter} {target}".encode()).hexdigest()
        if key not in self.bases:
            options = [] if pip else ["--without-pip"]
            subprocess.run([interpreter, "-I", "-m", "venv", *options, target], check=True)
            base = self.folder / "bare" / key
            _link(target, base)
            self.bases[key] = StoredEnvironment(base, "", _facts(base))
        else:
            self.bases[key].hold_clean()
            _link(self.bases[key].folder, target)

    def borrow(self, environment: Path, root: Path) -> None:
        """Let an environment use the packages of this program and the code of a checkout."""
        if not environment.exists():
            self.bare(CURRENT_INTERPRETER, environment, pip=False)
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

    def keep(self, key: str, job: str, places: list[Path]) -> None:
        """Store what an install step created in these folders."""
        copy = self.folder / "kept" / key
        copy.mkdir(parents=True)
        for number, folder in enumerate(places):
            if folder.exists():
                _link(folder, copy / str(number))
        self.stored[key] = StoredEnvironment(copy, job, _facts(copy))

    def restore(self, key: str, places: list[Path]) -> str:
        """Restore what the first install created, and return the name of its job.

        Raises RuntimeError if a job has changed one of its files since.
        """
        stored = self.stored[key]
        stored.hold_clean()
        for number, folder in enumerate(places):
            if (stored.folder / str(number)).exists():
                shutil.rmtree(folder, ignore_errors=True)
                _link(stored.folder / str(number), folder)
        return stored.job


def _link(source: Path, target: Path) -> None:
    """Copy a tree by hard links."""
    shutil.copytree(source, target, symlinks=True, copy_function=os.link)


def _facts(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of each file, except of .pyc files, which Python writes by itself."""
    facts_of: dict[str, tuple[int, int]] = {}
    folders, prefix_length = [os.fspath(folder)], len(os.fspath(folder)) + 1
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(".pyc"):
                    status = entry.stat()
                    facts_of[entry.path[prefix_length:]] = (status.st_size, status.st_mtime_ns)
    return facts_of
