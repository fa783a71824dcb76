"""Record which files a process opens, as far as Python and safetensors can see.

Files opened by other native libraries are not seen, so this finds mistakes and is no security
boundary.
"""

import atexit
import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPEN_EVENTS = ("open", "sqlite3.connect")
"""Audit events of Python whose first argument is the file that is opened."""
_PACKAGE = Path(__file__).resolve().parents[1]
"""Folder of the harness."""
_WATCHED_ATTRIBUTE = "_geneb_watched"
"""Attribute of the `safe_open` that replaces the one of safetensors."""


class FileWatch:
    """Records every file that this process opens for reading and did not write itself."""

    def __init__(self) -> None:
        """Prepare to record; `start` begins."""
        self.opened: dict[str, str] = {}
        """The path under which each file was first opened, by the file's real path."""
        self._scopes: list[dict[str, str]] = []
        """The mappings that the open blocks of `recording` fill."""
        self._written: set[str] = set()
        """Real paths of the files that this process wrote."""
        self._is_in_hook = False
        self._is_hooked = False
        self._is_started = False

    def start(self) -> None:
        """Record in `opened` every file that the process reads from now on."""
        self._is_started = True
        self._add_hook()

    def _add_hook(self) -> None:
        """Add the audit hook, unless it was added; it stays until the process ends.

        As the interpreter ends, it clears this module, while the hook is still called.
        """
        if not self._is_hooked:
            sys.addaudithook(self._hook)
            atexit.register(self._stop)
            self._is_hooked = True
        _watch_safetensors(self)

    @contextlib.contextmanager
    def recording(self) -> Iterator[dict[str, str]]:
        """Yield a mapping like `opened` of the files read within the block.

        Unlike `opened`, it includes files that this process wrote.
        """
        self._add_hook()
        scope: dict[str, str] = {}
        self._scopes.append(scope)
        try:
            yield scope
        finally:
            self._scopes = [open_scope for open_scope in self._scopes if open_scope is not scope]

    def _stop(self) -> None:
        """Record no further files."""
        self._is_started, self._scopes = False, []

    def note(self, path: str | bytes | Path) -> None:
        """Record that a file is read, if it exists."""
        path_text = os.fsdecode(path)
        real_path = os.path.realpath(path_text)
        if not Path(real_path).is_file():
            return
        is_read = self._is_started and real_path not in self._written
        for files in (*self._scopes, *((self.opened,) if is_read else ())):
            files.setdefault(real_path, path_text)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record the file that an audit event opens, unless the process writes it."""
        if self._is_in_hook or not (self._is_started or self._scopes):
            return
        if event not in OPEN_EVENTS or not isinstance(arguments[0], str | bytes | Path):
            return
        self._is_in_hook = True
        try:
            if _opens_for_writing(arguments):
                self._written.add(os.path.realpath(os.fsdecode(arguments[0])))
            else:
                self.note(arguments[0])
        finally:
            self._is_in_hook = False


WATCH = FileWatch()
"""The watch of a process that runs an extractor, started before the extractor is loaded."""


def _opens_for_writing(arguments: tuple[Any, ...]) -> bool:
    """Whether the arguments of an "open" event open the file for writing."""
    if len(arguments) < len(("path", "mode", "flags")):
        return False
    mode, flags = arguments[1:3]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def _watch_safetensors(watch: FileWatch) -> None:
    """Record the files that safetensors opens by mapping them, which Python does not see."""
    try:
        import safetensors
    except ImportError:  # a practice run does not need it
        return
    original_safe_open = safetensors.safe_open
    if hasattr(original_safe_open, _WATCHED_ATTRIBUTE):
        return

    def safe_open(filename: Any, *args: Any, **keywords: Any) -> Any:
        watch.note(filename)
        return original_safe_open(filename, *args, **keywords)

    setattr(safe_open, _WATCHED_ATTRIBUTE, True)
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("safe_open") is original_safe_open:
            vars(module)["safe_open"] = safe_open


def package_folders() -> list[Path]:
    """Return the folders of Python, of its packages and of the harness."""
    folders = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    folders |= {name for name in sys.path if Path(name).name.endswith("-packages")}
    return [_PACKAGE, *(Path(name).resolve() for name in folders)]


def is_within(path: Path, folders: list[Path]) -> bool:
    """Whether a path is below one of some folders."""
    return any(path.is_relative_to(folder) for folder in folders)
