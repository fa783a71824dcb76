"""Write tables as Parquet files (Apache Parquet format 2.4), whose bytes depend only on the table.

The bytes that a library writes depend on its version, but a published board must depend only on a
commit. Pages are not compressed, since indices of distinct values, written as runs, are short.
"""

import itertools
import operator
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

MAGIC = b"PAR1"
WRITER = "geneb-ci"
RLE, PLAIN, RLE_DICTIONARY = 3, 0, 8
"""Numbers of the encodings in the format."""
DATA_PAGE, DICTIONARY_PAGE = 0, 2
OPTIONAL, REPEATED = 1, 2
UTF8, LIST = 0, 3
"""Numbers of the logical types in the format."""
PACKED_NUMBERS = 8
"""Number of numbers that are bit-packed together."""
GROUP_ROWS = 1 << 20
"""Maximum number of rows in a row group, which a reader and the writer hold in memory at once."""
_SHORT_LIST = 15
"""Length from which the length of a list is written in bytes after its head."""

ColumnKind = Literal["text", "number", "count", "flag", "numbers"]


class ParquetColumn(NamedTuple):
    """A column of a table, whose values are of its kind or None."""

    name: str
    kind: ColumnKind
    """Kind of the values; "numbers" means lists of numbers."""


class _PhysicalType(IntEnum):
    """Numbers of the physical types in the format."""

    BOOLEAN, INT64, DOUBLE, BYTE_ARRAY = 0, 2, 5, 6


class _CompactType(IntEnum):
    """Types of Thrift's compact protocol, in which page heads and the footer are written."""

    I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


_PHYSICAL_TYPES: Mapping[ColumnKind, _PhysicalType] = {
    "text": _PhysicalType.BYTE_ARRAY,
    "number": _PhysicalType.DOUBLE,
    "count": _PhysicalType.INT64,
    "flag": _PhysicalType.BOOLEAN,
    "numbers": _PhysicalType.DOUBLE,
}


class _Chunk(NamedTuple):
    """The pages of a column in a row group, and facts about them for the footer."""

    content: bytes
    value_count: int
    data_offset: int
    """Offset of the data page in `content`, where it follows the page of the distinct values."""
    encodings: tuple[int, ...]


def parquet_chunks(
    columns: Sequence[ParquetColumn], rows: Iterable[Sequence[Any]], notes: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file with these rows, in pieces.

    `notes` is key -> value of the footer's metadata. A row group has at most GROUP_ROWS rows, and
    only one is in memory at a time.
    """
    yield MAGIC
    groups: list[_Struct] = []
    remaining_rows, offset, row_count = iter(rows), len(MAGIC), 0
    while (group_rows := list(itertools.islice(remaining_rows, GROUP_ROWS))) or not groups:
        by_column = list(zip(*group_rows, strict=True)) or [()] * len(columns)
        group_size, row_count, column_facts = len(group_rows), row_count + len(group_rows), []
        group_offset = offset
        del group_rows
        for column in columns:
            chunk = _chunk(column, by_column.pop(0))  # frees the values of the column
            column_facts.append(_chunk_metadata(column, chunk, offset))
            offset += len(chunk.content)
            yield chunk.content
        groups.append(
            _Struct([(1, column_facts), (2, _Long(offset - group_offset)), (3, _Long(group_size))])
        )
    footer = _struct(
        [
            (1, 1),
            (2, [_root(columns), *(part for column in columns for part in _schema(column))]),
            (3, _Long(row_count)),
            (4, groups),
            (5, [_Struct([(1, name), (2, text)]) for name, text in notes.items()]),
            (6, WRITER),
        ]
    )
    yield footer + struct.pack("<I", len(footer)) + MAGIC


class _Long(int):
    """A number that the format stores with 64 bits."""


class _Struct(list[tuple[int, Any]]):
    """Numbered members of a record, in the order of their numbers."""


def _root(columns: Sequence[ParquetColumn]) -> _Struct:
    """Return the first element of the schema, which is the table."""
    return _Struct([(4, "table"), (5, len(columns))])


def _schema(column: ParquetColumn) -> list[_Struct]:
    """Return the elements of the schema that describe a column."""
    physical = _PHYSICAL_TYPES[column.kind]
    head: list[tuple[int, Any]] = [(3, OPTIONAL), (4, column.name)]
    if column.kind == "numbers":
        return [
            _Struct([*head, (5, 1), (6, LIST), (10, _Struct([(3, _Struct())]))]),
            _Struct([(3, REPEATED), (4, "list"), (5, 1)]),
            _Struct([(1, int(physical)), (3, OPTIONAL), (4, "element")]),
        ]
    text_type = [(6, UTF8), (10, _Struct([(1, _Struct())]))] if column.kind == "text" else []
    return [_Struct([(1, int(physical)), *head, *text_type])]


def _chunk_metadata(column: ParquetColumn, chunk: _Chunk, offset: int) -> _Struct:
    """Return the entry of the footer for a column whose pages start at `offset` in the file."""
    path = [column.name, "list", "element"] if column.kind == "numbers" else [column.name]
    size = _Long(len(chunk.content))
    fields: list[tuple[int, Any]] = [
        (1, int(_PHYSICAL_TYPES[column.kind])),
        (2, list(chunk.encodings)),
        (3, path),
        (4, 0),
        (5, _Long(chunk.value_count)),
        (6, size),
        (7, size),
        (9, _Long(offset + chunk.data_offset)),
    ]
    if chunk.data_offset:
        fields.append((11, _Long(offset)))
    return _Struct([(2, _Long(offset)), (3, _Struct(fields))])


def _chunk(column: ParquetColumn, values: Sequence[Any]) -> _Chunk:
    """Return the pages of a column: its distinct values, then the index of each value."""
    levels = b""
    if column.kind == "numbers":
        repetition_levels, definition_levels, present_values = _flattened(values)
        levels = _level_bytes(repetition_levels, 1) + _level_bytes(definition_levels, 3)
        count = len(definition_levels)
    else:
        is_known = list(map(operator.is_not, values, itertools.repeat(None)))
        present_values = list(values if all(is_known) else itertools.compress(values, is_known))
        levels, count = _level_bytes(is_known, 1), len(values)
    if column.kind == "flag":
        body, encoding, dictionary = (
            _bit_packed([int(value) for value in present_values], 1),
            PLAIN,
            b"",
        )
    else:
        distinct = dict(zip(dict.fromkeys(present_values), itertools.count()))
        width = max(1, (len(distinct) - 1).bit_length())
        body = bytes([width]) + _hybrid(list(map(distinct.__getitem__, present_values)), width)
        encoding = RLE_DICTIONARY
        stored = _plain_encoded(column.kind, distinct)
        dictionary = _page(DICTIONARY_PAGE, 7, [(1, len(distinct)), (2, PLAIN)], stored)
    page_header: list[tuple[int, Any]] = [(1, count), (2, encoding), (3, RLE), (4, RLE)]
    data_page = _page(DATA_PAGE, 5, page_header, levels + body)
    encodings = (PLAIN, RLE) if encoding == PLAIN else (PLAIN, RLE, RLE_DICTIONARY)
    return _Chunk(dictionary + data_page, count, len(dictionary), encodings)


def _flattened(values: Iterable[Sequence[float] | None]) -> tuple[list[int], list[int], list[Any]]:
    """Return the repetition levels, the definition levels and the numbers of lists.

    The repetition level is 1 for a number that continues a list. The definition level is 0 for
    None, 1 for an empty list and 3 for a number.
    """
    repetition_levels: list[int] = []
    definition_levels: list[int] = []
    known_values: list[Any] = []
    for numbers in values:
        repetition_levels += [0, *[1] * (len(numbers) - 1)] if numbers else [0]
        definition_levels += [3] * len(numbers) if numbers else [0 if numbers is None else 1]
        known_values += numbers or ()
    return repetition_levels, definition_levels, known_values


def _plain_encoded(column_kind: ColumnKind, values: Iterable[Any]) -> bytes:
    """Return values of a kind of column as bytes, in the PLAIN encoding of the format."""
    if column_kind == "text":
        texts = [value.encode("utf-8", "replace") for value in values]
        return b"".join(part for text in texts for part in (struct.pack("<I", len(text)), text))
    numbers = list(values)
    return struct.pack(f"<{len(numbers)}{'q' if column_kind == 'count' else 'd'}", *numbers)


def _page(page_type: int, member: int, head: list[tuple[int, Any]], body: bytes) -> bytes:
    size = len(body)
    return _struct([(1, page_type), (2, size), (3, size), (member, _Struct(head))]) + body


def _level_bytes(levels: Sequence[int], maximum: int) -> bytes:
    encoded = _hybrid(levels, maximum.bit_length())
    return struct.pack("<I", len(encoded)) + encoded


def _hybrid(numbers: Sequence[int], width: int) -> bytes:
    """Return numbers of `width` bits as runs (RLE) or bit-packed, whichever is shorter."""
    size = (width + 7) // 8
    groups = -(-len(numbers) // PACKED_NUMBERS)
    if numbers and min(numbers) == max(numbers):
        return _varint(len(numbers) << 1) + int(numbers[0]).to_bytes(size, "little")
    changes = map(operator.ne, numbers, itertools.islice(numbers, 1, None))
    run_ends = list(itertools.compress(itertools.count(1), changes))
    if (len(run_ends) + 1) * (size + 1) > groups * width:
        return _varint(groups << 1 | 1) + _bit_packed(numbers, width)
    run_starts = [0, *run_ends]
    run_ranges = zip(run_starts, [*run_ends, len(numbers)], strict=True)
    return b"".join(
        _varint((end - start) << 1) + int(numbers[start]).to_bytes(size, "little")
        for start, end in run_ranges
        if end > start
    )


def _bit_packed(numbers: Sequence[int], width: int) -> bytes:
    """Return numbers bit-packed with `width` bits each, lowest bits first, in complete groups."""
    digits = [f"{number:0{width}b}" for number in range(max(numbers, default=0) + 1)]
    bits = "".join(map(digits.__getitem__, reversed(numbers)))
    return int(bits or "0", 2).to_bytes(-(-len(numbers) // PACKED_NUMBERS) * width, "little")


def _varint(number: int) -> bytes:
    """Return a number as a variable-length integer: seven bits per byte, lowest bits first."""
    encoded = bytearray()
    while number >> 7:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _struct(members: Iterable[tuple[int, Any]]) -> bytes:
    """Return a record, given by its numbered members, as bytes of Thrift's compact protocol."""
    encoded, last_number = [], 0
    for number, member in members:
        member_type, content = _encoded(member)
        encoded.append(bytes([(number - last_number) << 4 | member_type]) + content)
        last_number = number
    return b"".join([*encoded, b"\0"])


def _encoded(value: Any) -> tuple[_CompactType, bytes]:
    if isinstance(value, _Struct):
        return _CompactType.STRUCT, _struct(value)
    if isinstance(value, list):
        encoded = [_encoded(member) for member in value]
        element_type = encoded[0][0] if encoded else _CompactType.STRUCT
        size = len(encoded)
        head = bytes([min(size, _SHORT_LIST) << 4 | element_type])
        size_bytes = _varint(size) if size >= _SHORT_LIST else b""
        return _CompactType.LIST, b"".join([head, size_bytes, *(content for _, content in encoded)])
    if isinstance(value, str):
        raw = value.encode("utf-8", "replace")
        return _CompactType.BINARY, _varint(len(raw)) + raw
    # Zigzag encoding; no number here is negative.
    return (_CompactType.I64 if isinstance(value, _Long) else _CompactType.I32), _varint(value << 1)
