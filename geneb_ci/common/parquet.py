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

FILE_MARK = b"PAR1"
"""First and last bytes of every Parquet file."""
WRITER_NAME = "geneb-ci"
"""Name of the program in the footer."""
RLE, PLAIN, RLE_DICTIONARY = 3, 0, 8
"""Numbers of the encodings in the format."""
DATA_PAGE, DICTIONARY_PAGE = 0, 2
"""Numbers of the kinds of pages in the format."""
OPTIONAL, REPEATED = 1, 2
"""Numbers of the kinds of repetition in the format."""
UTF8, LIST = 0, 3
"""Numbers of the logical types in the format."""
PACK_SIZE = 8
"""How many numbers are bit-packed together."""
GROUP_ROWS_MAX = 1 << 20
"""Maximum number of rows in a row group, which a reader and the writer hold in memory at once."""
_LONG_LIST_MIN = 15
"""Minimum length of a list whose length does not fit into its first byte."""

ColumnKind = Literal["text", "number", "count", "flag", "numbers"]
"""Kinds of values in a column."""


class ParquetColumn(NamedTuple):
    """A column of a table, whose values are of its kind or None."""

    name: str
    kind: ColumnKind
    """Kind of the values; "numbers" means lists of numbers."""


class _PhysicalType(IntEnum):
    """How values are stored: numbers of the types in the format."""

    BOOLEAN, INT64, DOUBLE, BYTE_ARRAY = 0, 2, 5, 6


class _CompactType(IntEnum):
    """Types of Thrift's compact protocol, in which page heads and the footer are written."""

    I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


_PHYSICAL_TYPE_OF: Mapping[ColumnKind, _PhysicalType] = {
    "text": _PhysicalType.BYTE_ARRAY,
    "number": _PhysicalType.DOUBLE,
    "count": _PhysicalType.INT64,
    "flag": _PhysicalType.BOOLEAN,
    "numbers": _PhysicalType.DOUBLE,
}
"""How the format stores each kind of values."""


class _ColumnChunk(NamedTuple):
    """The bytes of a column in a row group, and facts about them for the footer."""

    content: bytes
    value_count: int
    """Number of values, None included."""
    data_offset: int
    """Offset of the data page in `content`, where it follows the page of the distinct values."""
    encodings: tuple[int, ...]


def parquet_chunks(
    columns: Sequence[ParquetColumn], rows: Iterable[Sequence[Any]], notes: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file with these rows, in pieces.

    `notes` are texts in the footer, by key. A row group has at most GROUP_ROWS_MAX rows, and only
    one is in memory at a time.
    """
    yield FILE_MARK
    groups: list[_Record] = []
    remaining_rows, offset, row_count = iter(rows), len(FILE_MARK), 0
    while (group_rows := list(itertools.islice(remaining_rows, GROUP_ROWS_MAX))) or not groups:
        by_column = list(zip(*group_rows, strict=True)) or [()] * len(columns)
        group_size, row_count, column_facts = len(group_rows), row_count + len(group_rows), []
        group_offset = offset
        del group_rows
        for column in columns:
            chunk = _column_chunk(column, by_column.pop(0))  # frees the values of the column
            column_facts.append(_chunk_metadata(column, chunk, offset))
            offset += len(chunk.content)
            yield chunk.content
        groups.append(
            _Record(
                [(1, column_facts), (2, _Int64(offset - group_offset)), (3, _Int64(group_size))]
            )
        )
    footer = _record_bytes(
        [
            (1, 1),
            (
                2,
                [
                    _table_element(columns),
                    *(part for column in columns for part in _column_elements(column)),
                ],
            ),
            (3, _Int64(row_count)),
            (4, groups),
            (5, [_Record([(1, name), (2, text)]) for name, text in notes.items()]),
            (6, WRITER_NAME),
        ]
    )
    yield footer + struct.pack("<I", len(footer)) + FILE_MARK


class _Int64(int):
    """A number that the format stores with 64 bits."""


class _Record(list[tuple[int, Any]]):
    """A record of the footer: its members with their numbers, in ascending order."""


def _table_element(columns: Sequence[ParquetColumn]) -> _Record:
    """Return the first element of the schema, which stands for the table."""
    return _Record([(4, "table"), (5, len(columns))])


def _column_elements(column: ParquetColumn) -> list[_Record]:
    """Return the elements of the schema that describe a column."""
    physical = _PHYSICAL_TYPE_OF[column.kind]
    head: list[tuple[int, Any]] = [(3, OPTIONAL), (4, column.name)]
    if column.kind == "numbers":
        return [
            _Record([*head, (5, 1), (6, LIST), (10, _Record([(3, _Record())]))]),
            _Record([(3, REPEATED), (4, "list"), (5, 1)]),
            _Record([(1, int(physical)), (3, OPTIONAL), (4, "element")]),
        ]
    text_type = [(6, UTF8), (10, _Record([(1, _Record())]))] if column.kind == "text" else []
    return [_Record([(1, int(physical)), *head, *text_type])]


def _chunk_metadata(column: ParquetColumn, chunk: _ColumnChunk, offset: int) -> _Record:
    """Return the entry of the footer for a column whose pages start at `offset` in the file."""
    path = [column.name, "list", "element"] if column.kind == "numbers" else [column.name]
    size = _Int64(len(chunk.content))
    fields: list[tuple[int, Any]] = [
        (1, int(_PHYSICAL_TYPE_OF[column.kind])),
        (2, list(chunk.encodings)),
        (3, path),
        (4, 0),
        (5, _Int64(chunk.value_count)),
        (6, size),
        (7, size),
        (9, _Int64(offset + chunk.data_offset)),
    ]
    if chunk.data_offset:
        fields.append((11, _Int64(offset)))
    return _Record([(2, _Int64(offset)), (3, _Record(fields))])


def _column_chunk(column: ParquetColumn, values: Sequence[Any]) -> _ColumnChunk:
    """Return the pages of a column: its distinct values, then the index of each value."""
    levels = b""
    if column.kind == "numbers":
        repetition_levels, definition_levels, present_values = _levels_and_numbers(values)
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
        body = bytes([width]) + _runs_or_packed(
            list(map(distinct.__getitem__, present_values)), width
        )
        encoding = RLE_DICTIONARY
        stored = _plain_encoded(column.kind, distinct)
        dictionary = _page(DICTIONARY_PAGE, 7, [(1, len(distinct)), (2, PLAIN)], stored)
    page_header: list[tuple[int, Any]] = [(1, count), (2, encoding), (3, RLE), (4, RLE)]
    data_page = _page(DATA_PAGE, 5, page_header, levels + body)
    encodings = (PLAIN, RLE) if encoding == PLAIN else (PLAIN, RLE, RLE_DICTIONARY)
    return _ColumnChunk(dictionary + data_page, count, len(dictionary), encodings)


def _levels_and_numbers(
    values: Iterable[Sequence[float] | None],
) -> tuple[list[int], list[int], list[Any]]:
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
    """Return a page: its head, in which a member is that of its type, and its body."""
    size = len(body)
    return _record_bytes([(1, page_type), (2, size), (3, size), (member, _Record(head))]) + body


def _level_bytes(levels: Sequence[int], maximum: int) -> bytes:
    """Return repetition or definition levels as bytes, after their length."""
    encoded = _runs_or_packed(levels, maximum.bit_length())
    return struct.pack("<I", len(encoded)) + encoded


def _runs_or_packed(numbers: Sequence[int], width: int) -> bytes:
    """Return numbers of `width` bits as runs of equal numbers or bit-packed: what is shorter."""
    size = (width + 7) // 8
    groups = -(-len(numbers) // PACK_SIZE)
    if numbers and min(numbers) == max(numbers):
        return _variable_length(len(numbers) << 1) + int(numbers[0]).to_bytes(size, "little")
    changes = map(operator.ne, numbers, itertools.islice(numbers, 1, None))
    run_ends = list(itertools.compress(itertools.count(1), changes))
    if (len(run_ends) + 1) * (size + 1) > groups * width:
        return _variable_length(groups << 1 | 1) + _bit_packed(numbers, width)
    run_starts = [0, *run_ends]
    run_ranges = zip(run_starts, [*run_ends, len(numbers)], strict=True)
    return b"".join(
        _variable_length((end - start) << 1) + int(numbers[start]).to_bytes(size, "little")
        for start, end in run_ranges
        if end > start
    )


def _bit_packed(numbers: Sequence[int], width: int) -> bytes:
    """Return numbers bit-packed with `width` bits each, lowest bits first, in complete groups."""
    digits = [f"{number:0{width}b}" for number in range(max(numbers, default=0) + 1)]
    bits = "".join(map(digits.__getitem__, reversed(numbers)))
    return int(bits or "0", 2).to_bytes(-(-len(numbers) // PACK_SIZE) * width, "little")


def _variable_length(number: int) -> bytes:
    """Return a number as a variable-length integer: seven bits per byte, lowest bits first."""
    encoded = bytearray()
    while number >> 7:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _record_bytes(members: Iterable[tuple[int, Any]]) -> bytes:
    """Return a record, given by its numbered members, as bytes of Thrift's compact protocol."""
    encoded, last_number = [], 0
    for number, member in members:
        member_type, content = _thrift_value(member)
        encoded.append(bytes([(number - last_number) << 4 | member_type]) + content)
        last_number = number
    return b"".join([*encoded, b"\0"])


def _thrift_value(value: Any) -> tuple[_CompactType, bytes]:
    """Return the type and the bytes of a value in Thrift's compact protocol."""
    if isinstance(value, _Record):
        return _CompactType.STRUCT, _record_bytes(value)
    if isinstance(value, list):
        encoded = [_thrift_value(member) for member in value]
        element_type = encoded[0][0] if encoded else _CompactType.STRUCT
        size = len(encoded)
        head = bytes([min(size, _LONG_LIST_MIN) << 4 | element_type])
        size_bytes = _variable_length(size) if size >= _LONG_LIST_MIN else b""
        return _CompactType.LIST, b"".join([head, size_bytes, *(content for _, content in encoded)])
    if isinstance(value, str):
        raw = value.encode("utf-8", "replace")
        return _CompactType.BINARY, _variable_length(len(raw)) + raw
    # Zigzag encoding; no number here is negative.
    return (_CompactType.I64 if isinstance(value, _Int64) else _CompactType.I32), _variable_length(
        value << 1
    )
