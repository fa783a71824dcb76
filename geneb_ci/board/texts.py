"""Large files of a board, made and written chunk by chunk, so that they need little memory."""

import contextlib
import filecmp
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from geneb_ci.common.errors import unwritable
from geneb_ci.common.files import MODE
from geneb_ci.common.parallel import in_processes

Text = Callable[[], Iterable[bytes]]
"""Returns the chunks of a text, in order."""
DIGEST_DIGITS = 16
"""Hexadecimal digits of the digest in a script's name, enough to distinguish cached boards."""
_SCRIPT = re.compile(rf"board-(?P<part>[a-z]+(?:-[0-9]+)?)\.[0-9a-f]{{{DIGEST_DIGITS}}}\.js")
_HEAD, _TAIL = '(globalThis.geneb??={{}})["{}"]=JSON.parse(', b");\n"


def ascii_text(value: object) -> bytes:
    """Return a value as compact ASCII JSON. Lone surrogates are kept; NaN raises ValueError."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def script_of(name: str, text: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a script that defines the value of a JSON text.

    The chunks of `text` must not split a character. The script is ASCII and passes a string to
    JSON.parse, so no data are executed; that is also faster than a literal, and `__proto__` is an
    ordinary key.
    """
    yield _HEAD.format(name).encode() + b'"'
    for chunk in text:
        yield json.dumps(chunk.decode())[1:-1].encode()
    yield b'"' + _TAIL


def script_name(part: str, digest: str) -> str:
    """Return the file name of a part of the page's data, for the board with a digest."""
    return f"board-{part}.{digest}.js"


def script_part(name: str) -> str | None:
    """Return the part of the page's data in a script, of any board; None for another file."""
    match = _SCRIPT.fullmatch(name)
    return match["part"] if match else None


class Texts(Mapping[str, bytes]):
    """Files by name; reading one makes it, `write_texts` writes it chunk by chunk."""

    def __init__(self, makers: Mapping[str, Text]) -> None:
        self.makers = dict(makers)
        self._whole: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> bytes:
        if name not in self._whole:
            self._whole[name] = b"".join(self.makers[name]())
        return self._whole[name]

    def __contains__(self, name: object) -> bool:
        return name in self.makers

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)

    def also(self, others: Mapping[str, bytes]) -> "Texts":
        """Return these files with others whose content is given."""
        return Texts(self.makers | {name: [content].copy for name, content in others.items()})

    def __or__(self, others: Mapping[str, bytes]) -> dict[str, bytes]:
        return {**self, **others}

    def __ror__(self, others: Mapping[str, bytes]) -> dict[str, bytes]:
        return {**others, **self}


def write_texts(folder: Path, texts: Texts, jobs: int) -> None:
    """Write files with `jobs` processes; each is replaced atomically after all have been made.

    A file that already has the same bytes is not touched.
    Raises UsageProblem for a folder that cannot be written, MachineFault for a full or broken disk.
    """
    names, token = list(texts), secrets.token_hex(4)
    staged = [folder / f".{name}.{token}" for name in names]

    def write(number: int) -> None:
        staged[number].unlink(missing_ok=True)  # left by a killed process
        with staged[number].open("xb") as stream:
            stream.writelines(texts.makers[names[number]]())
            stream.flush()
            os.fsync(stream.fileno())
        staged[number].chmod(MODE)

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for _ in in_processes(write, range(len(names)), jobs, 1):
            pass
        for name, temporary in zip(names, staged, strict=True):
            if not _is_there(folder / name, temporary):
                temporary.replace(folder / name)
    except OSError as error:
        raise unwritable(str(folder), error, "name a folder that you may write to") from error
    finally:
        for temporary in staged:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _is_there(path: Path, temporary: Path) -> bool:
    """Whether a regular file, not a link, has the bytes and the mode of the new file."""
    return (
        path.is_file()
        and not path.is_symlink()
        and path.stat().st_mode == temporary.stat().st_mode
        and filecmp.cmp(path, temporary, shallow=False)
    )
