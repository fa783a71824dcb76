"""Find submission files by the paths of a command; recognise, read and decode them."""

import errno
import operator
import os
import stat
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Fault, known_name
from reference_harness.formats.files import (
    LINK,
    Irregular,
    NotReadable,
    TooLarge,
    read_json,
    read_regular,
)
from reference_harness.formats.recognition import (
    BOM,
    CONFLICT,
    Recognition,
    disguise_of,
    foreign_format_of,
)
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX

_SUBMISSION_FIX = "pass a submission, or a folder with *.json files"
_GLOB_CHARACTERS = frozenset("*?[")
"""Characters of a pattern that the shell did not replace by file names."""
PATH_SORT_KEY = operator.attrgetter("parts")
"""Function that returns the parts of a path: they sort like paths, and much faster."""


def submission_files(
    arguments: Iterable[Path], folder_by_root: dict[Path, Path]
) -> tuple[list[Path], list[NothingChecked]]:
    """Return the submission files of some arguments without duplicates, and errors.

    A folder means every `*.json` directly in it. `folder_by_root` has the folder of submissions of
    a repository by its root. Each argument without any file has an error.
    """
    paths: dict[Path, None] = {}
    refusals: list[NothingChecked] = []
    for argument in arguments:
        try:
            files = sorted(
                _submission_files(folder_by_root.get(argument, argument)), key=PATH_SORT_KEY
            )
        except NothingChecked as error:
            refusals.append(error)
            continue
        if not files:
            refusals.append(NothingChecked(_no_files_reason(argument), _SUBMISSION_FIX))
        paths.update(dict.fromkeys(files))
    return list(paths), refusals


def located(path: Path) -> Path:
    """Return the absolute path of a file, which may be a link; links of its folder are followed."""
    return Path(os.path.realpath(path.parent)) / path.name


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False if it cannot be accessed."""
    mode = _mode_of(path, follow=True)
    return mode is not None and stat.S_ISDIR(mode)


def _mode_of(path: Path, *, follow: bool) -> int | None:
    """Return the mode of a path; None if it does not exist or cannot be accessed."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except (OSError, ValueError):
        return None


def _submission_files(path: Path) -> Iterator[Path]:
    """Yield the path itself if it is a file, the submissions in it if it is a folder.

    Yields nothing if it does not exist or cannot be accessed. Raises NothingChecked if a folder
    cannot be listed.
    """
    mode = _mode_of(path, follow=False)
    if mode is None:
        return
    if stat.S_ISDIR(mode):
        yield from files_in(path)
    else:
        yield path


def files_in(folder: Path) -> Iterator[Path]:
    """Yield every `*.json` directly in a folder, except hidden files.

    Raises NothingChecked if the folder cannot be listed.
    """
    try:
        with os.scandir(folder) as listing:
            # Broken links and folders named *.json are included, so that reading reports them.
            yield from (
                folder / e.name for e in listing if e.name.endswith(".json") and e.name[0] != "."
            )
    except OSError as error:
        raise NothingChecked(
            f"{folder}: the folder cannot be listed: {error.strerror}",
            "check the permissions of the folder",
        ) from error
    except ValueError as error:  # a NUL in it
        raise NothingChecked(
            f"{folder}: the name of the folder contains a NUL character", "pass another folder"
        ) from error


def _no_files_reason(path: Path) -> str:
    """Return a message why a path names no submission."""
    if is_folder(path):
        return f"{path}: the folder contains no *.json"
    if _GLOB_CHARACTERS & set(str(path)):
        return f"{path}: no file matches"
    try:
        path.lstat()
    except ValueError:
        pass  # a NUL character: no file has such a name
    except OSError as error:
        if error.errno != errno.ENOENT:
            return f"{path}: cannot be read: {error.strerror}"
    return f"{path}: no such file{_similar_name(path)}"


def _similar_name(path: Path) -> str:
    """Return "; did you mean ...?" with a file of almost this name; "" without such a file.

    Almost means that only letter case or the ending `.json` differs.
    """
    similar = {path.name.casefold(), f"{path.name}.json".casefold()}
    try:
        file_names = sorted(sibling.name for sibling in path.parent.iterdir())
    except (OSError, ValueError):
        return ""
    match = next((file_name for file_name in file_names if file_name.casefold() in similar), None)
    return f"; did you mean {path.parent / match}?" if match else ""


class FileKind(Enum):
    """A kind of file that commands read: its title, members that it has, and how to get one."""

    SUBMISSION = (
        "a submission",
        ("results",),
        "name a submission, such as submissions/MODEL.json",
    )
    RUN_RECORD = (
        "a run record",
        ("probe", "tasks"),
        "make a run record with `geneb-harness run`",
    )
    COMMITMENT = (
        "a commitment",
        ("commitment", "sha256"),
        "make a commitment with `geneb-ci audit commit SUBMISSION --output C.json`",
    )
    PLAN = (
        "a plan",
        ("commitment", "chosen"),
        "make a plan with `geneb-ci audit plan C.json --committed-at TIME --output PLAN.json`",
    )
    EMBEDDING_PLAN = (
        "a plan of embeddings",
        ("commitment", "rows", "root"),
        "make the plan with `geneb-ci audit plan C.json --sample embeddings --output PLAN.json`",
    )
    EMBEDDING_OUTCOME = (
        "an unsigned outcome of embeddings",
        ("plan", "verdict", "receipt", "rerun_sha256"),
        "make the outcome with `geneb-ci audit run PLAN.json --work DIR --unsigned --format json`",
    )
    OUTCOME = (
        "an unsigned outcome",
        ("plan", "verdict"),
        "make an outcome with `geneb-ci audit run PLAN.json --unsigned --format json`",
    )
    RECORD = (
        "an audit record",
        ("payload", "signatures"),
        "name a record: leaderboard/audits/MODEL/ID.json",
    )

    def __init__(self, title: str, members: tuple[str, ...], fix: str) -> None:
        self.title = title
        self.members = members
        self.fix = fix

    def fits(self, document: object) -> bool:
        """Whether a parsed file has the members of this kind."""
        return isinstance(document, dict) and all(name in document for name in self.members)

    def fits_text(self, raw: bytes) -> bool:
        """Whether the bytes of a file are JSON with the members of this kind."""
        try:
            return self.fits(read_json(raw))
        except ValueError:
            return False


def file_of_row(model: str) -> Path | None:
    """Return the file of a row in the current repository, by its model id in any letter case.

    Return None if there is no such row.
    """
    folder = find_layout(Path.cwd()).submissions
    files = {file.stem: file for file in files_in(folder)} if folder is not None else {}
    file = files.get(known_name(model, files) or "")
    return None if file is None else Path(os.path.relpath(file))


def require_file(path: Path, file_kind: FileKind, command: str = "") -> None:
    """Raise NothingChecked for a folder, and for a missing file whose name is a row's model id.

    `command` is the command that the user typed, for the fix.
    """
    if file_kind is FileKind.SUBMISSION and not os.path.lexists(path):
        row = file_of_row(path.name.removesuffix(".json"))
        if row is not None:
            raise NothingChecked(
                f"{path}: there is no such file, expected {file_kind.title}",
                f"name the file of the row: geneb-ci {command} {row}",
            )
    if not is_folder(path):
        return
    first_file = (
        min(files_in(path), default=None) if file_kind is FileKind.SUBMISSION and command else None
    )
    raise NothingChecked(
        f"{path}: this is a folder, expected {file_kind.title}",
        f"name a file in this folder: geneb-ci {command} {first_file}"
        if first_file is not None
        else file_kind.fix,
    )


class OtherFile(NamedTuple):
    """The message and the fix of the error for a file of another kind than expected."""

    message: str
    fix: str


def other_kind(document: object, file_kind: FileKind) -> OtherFile | None:
    """Return the error for a parsed file of another kind: "this is a plan, not a commitment".

    Return None if the value is of this kind, or of no known kind.
    """
    foreign = foreign_format_of(document)
    if foreign is not None:
        return OtherFile(f"this is {foreign.title}, not {file_kind.title}", foreign.fix)
    if file_kind.fits(document):
        return None
    actual = next((candidate for candidate in FileKind if candidate.fits(document)), None)
    if actual is None:
        return None
    return OtherFile(f"this is {actual.title}, not {file_kind.title}", file_kind.fix)


def other_kind_of(raw: bytes, file_kind: FileKind) -> OtherFile | None:
    """Return the error of `other_kind` for the bytes of a file; None for a file of this kind."""
    disguise = disguise_of(raw)
    if disguise is not None:
        expected = "" if disguise.kind == CONFLICT else f", not {file_kind.title}"
        return OtherFile(f"this {disguise.predicate}{expected}", disguise.fix)
    try:
        return other_kind(read_json(raw), file_kind)
    except ValueError:
        return None


def refusal_of(raw: bytes, file_kind: FileKind, reason: str) -> OtherFile:
    """Return the error for a file that cannot be used: its other kind, or else `reason`."""
    return other_kind_of(raw, file_kind) or OtherFile(reason, file_kind.fix)


def read_bytes(path: Path) -> bytes | Fault:
    """Return the bytes of a regular file; links are not followed.

    Returns a Fault for a link, a device, or a file of more than `SUBMISSION_BYTES_MAX` bytes.
    Raises NothingChecked if the file cannot be opened.
    """
    try:
        return read_regular(path, SUBMISSION_BYTES_MAX, links=False)
    except Irregular as error:
        is_link = error.kind == LINK
        message = f"the file is {LINK}" if is_link else "this is not a regular file"
        return Fault("irregular-file", (), message, error.kind, "a regular file", at=0)
    except TooLarge as error:
        return too_large(error.size)
    except NotReadable as error:
        raise NothingChecked(
            f"{path}: {error.reason}", "check the path and its permissions"
        ) from error


def too_large(size: int) -> Fault:
    """Return the fault for a file of `size` bytes, more than `SUBMISSION_BYTES_MAX`."""
    message = f"the file has {size:,} bytes; the limit is {SUBMISSION_BYTES_MAX:,}"
    expected = f"at most {SUBMISSION_BYTES_MAX} bytes"
    return Fault("file-too-large", (), message, f"{size} bytes", expected, at=0)


def decode(raw: bytes) -> tuple[str, bool, tuple[Fault, ...]]:
    """Return the text of a file in UTF-8, whether it can be parsed, and faults of its encoding."""
    if not raw.strip():
        return "", False, (_empty_fault(raw),)
    if (disguise := disguise_of(raw)) is not None:
        return _decoded_disguise(raw, disguise)
    faults: tuple[Fault, ...] = ()
    bom_length = 0
    if raw.startswith(BOM):
        faults = (_encoding_fault("the file begins with a byte order mark", "EF BB BF", 0),)
        bom_length = len(BOM)
    try:
        text = raw[bom_length:].decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start + bom_length
        byte = f"byte 0x{raw[offset]:02X} at offset {offset}"
        at_character = len(raw[bom_length:offset].decode("utf-8"))
        # The text is only used to compute line and column.
        text = raw[bom_length:].decode("utf-8", "replace")
        return text, False, (*faults, _encoding_fault(f"{byte} is not UTF-8", byte, at_character))
    return text, True, faults


def _decoded_disguise(raw: bytes, disguise: Recognition) -> tuple[str, bool, tuple[Fault, ...]]:
    """Return the result of `decode` for bytes that are recognised as another kind of file."""
    if disguise.kind != CONFLICT:
        return "", False, (disguise_fault(disguise, "a JSON file", at=0),)
    text = raw.removeprefix(BOM).decode("utf-8", "replace")
    before = text.split("\n", disguise.lines[0] - 1)[:-1]
    offset = sum(len(line) + 1 for line in before)
    return text, False, (disguise_fault(disguise, "a JSON file", at=offset),)


def disguise_fault(
    disguise: Recognition, expected: str, *, at: int, card: bool = False, file: str = ""
) -> Fault:
    """Return the fault of a file of another kind; `at` is an offset, or a line of a card."""
    message = f"the file {disguise.predicate}"
    fix = sentence(disguise.fix)
    actual = disguise.title
    return Fault(disguise.kind, (), message, actual, expected, at=at, fix=fix, card=card, file=file)


def sentence(fix: str) -> str:
    """Return a fix as a sentence, with a capital letter and a full stop."""
    return f"{fix[:1].upper()}{fix[1:]}."


def _empty_fault(raw: bytes) -> Fault:
    """Return the fault of a file without content."""
    actual = f"{len(raw)} bytes, all whitespace"
    return Fault("empty-file", (), "the file is empty", actual, "a JSON object", at=0)


def _encoding_fault(message: str, actual: str, at: int) -> Fault:
    """Return the fault of a file that is not plain UTF-8."""
    return Fault("wrong-encoding", (), message, actual, "UTF-8 without a byte order mark", at=at)
