"""Large files of a board, made chunk by chunk, so that they need little memory."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from geneb_ci.common.files import ChunkedText

DIGEST_DIGITS = 16
"""Hexadecimal digits of the digest in a script's name, enough to distinguish cached boards."""
_SCRIPT_NAME = re.compile(rf"board-(?P<part>[a-z]+(?:-[0-9]+)?)\.[0-9a-f]{{{DIGEST_DIGITS}}}\.js")
"""File name of a script with a part of the page's data."""
_HEAD, _TAIL = '(globalThis.geneb??={{}})["{}"]=JSON.parse(', b");\n"


def ascii_text(value: object) -> bytes:
    """Return a value as compact ASCII JSON. Lone surrogates are kept; NaN raises ValueError."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def script_of(key: str, json_chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a script that defines the value of a JSON text.

    No chunk may split a character. The script is ASCII and passes a string to
    JSON.parse, so no data are executed; that is also faster than a literal, and `__proto__` is an
    ordinary key.
    """
    yield _HEAD.format(key).encode() + b'"'
    for chunk in json_chunks:
        yield json.dumps(chunk.decode())[1:-1].encode()
    yield b'"' + _TAIL


def script_name(part: str, digest: str) -> str:
    """Return the file name of the script with a part of a board's data, and with its digest."""
    return f"board-{part}.{digest}.js"


def script_part(file_name: str) -> str | None:
    """Return the name of the part of the page's data in a script; None for another file."""
    match = _SCRIPT_NAME.fullmatch(file_name)
    return match["part"] if match else None


class Texts(Mapping[str, bytes]):
    """The contents of files by name; a content is made when it is first read.

    `write_files` writes the chunks of `sources` instead, so that no file is in memory as a whole.
    """

    def __init__(self, sources: Mapping[str, ChunkedText]) -> None:
        self.sources = dict(sources)
        self._whole: dict[str, bytes] = {}

    def __getitem__(self, file_name: str) -> bytes:
        if file_name not in self._whole:
            self._whole[file_name] = b"".join(self.sources[file_name]())
        return self._whole[file_name]

    def __contains__(self, name: object) -> bool:
        return name in self.sources

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)

    def with_files(self, others: Mapping[str, bytes]) -> "Texts":
        """Return these files and others, whose contents are given by name."""
        return Texts(self.sources | {name: [content].copy for name, content in others.items()})

    def __or__(self, others: Mapping[str, bytes]) -> dict[str, bytes]:
        return {**self, **others}

    def __ror__(self, others: Mapping[str, bytes]) -> dict[str, bytes]:
        return {**others, **self}
