"""Digests of the folder of extractors: of the bytes of all its files, and of the code that ran.

The digest of the code, its shape, does not depend on formatting, comments and the names that the
code defines. It includes
the extractor's class and everything that the class uses from its module and from the other modules
of the folder. The names that these modules bind and the order of definitions have no effect; names
of other packages, constants and the order of statements in a function do.
"""

import ast
import functools
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from geneb_ci.audit.commitment import ExtractorCode
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.common.config import Layout
from geneb_ci.common.finding import Fault
from geneb_ci.submission.reading import read_bytes
from reference_harness.formats.files import line_ends_clause
from reference_harness.formats.processes import module_command

_IGNORED_FIELDS = frozenset(
    {"annotation", "returns", "type_comment", "type_params", "kind", "ctx", "name", "asname"}
)
"""Fields of a syntax tree that contain a bound name, or that do not change what a program
computes."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
"""The syntax tree of a function or a class."""
PARSED_BYTES_MAX = 300_000
"""Largest total size, in bytes, of an extractor and the modules of its folder that it imports: a
megabyte can take 10 s to parse, and all extractors of the harness together have half of this."""
_BOUND_NAME = "_"
"""The text that replaces, in a digest, every name that the modules bind."""


def code_shape(modules: Mapping[str, bytes], module: str, class_name: str) -> str:
    """Return the shape of a class: the digest, 64 hex digits, of its code and of all that it uses.

    `modules` maps the names of the files in the folder of extractors to their content. The digest
    of a module that Python cannot parse is that of its bytes. Raises AuditRefused for more source
    than `PARSED_BYTES_MAX`.
    """
    try:
        trees = _syntax_trees(modules, module)
        module_names = frozenset(PurePosixPath(name).with_suffix("").name for name in trees)
        return _ModuleDefinitions(list(trees.values()), module_names).digest(class_name)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # also if nested too deeply
        return hashlib.sha256(modules[module]).hexdigest()


def _syntax_trees(modules: Mapping[str, bytes], module: str) -> dict[str, ast.Module]:
    """Return, by file name, the syntax trees of a module and of all it imports from its folder."""
    trees: dict[str, ast.Module] = {}
    pending, size = [module], 0
    while pending:
        file_name = pending.pop()
        if file_name in trees or file_name not in modules:
            continue
        size += len(modules[file_name])
        if size > PARSED_BYTES_MAX:
            raise AuditRefused(
                f"the extractor and the modules that it imports have {size:,} bytes or more, "
                f"expected at most {PARSED_BYTES_MAX:,}",
                "move data from the source into files of the model",
            )
        trees[file_name] = ast.parse(modules[file_name])
        for module_name in _imported_modules(trees[file_name]):
            path = PurePosixPath(*module_name.split("."))
            pending += [f"{path}.py", f"{path}/__init__.py", f"{path.parent}.py"]
    return trees


def _imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted name of each module that an import in a module may refer to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}".strip(".") for alias in node.names)
            yield node.module or "."


class _ModuleDefinitions:
    """The definitions in some modules, from which the shape of a class is computed."""

    def __init__(self, trees: list[ast.Module], module_names: frozenset[str]) -> None:
        self.module_names = module_names
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.other_statements: list[ast.stmt] = []
        self.aliases: dict[str, str] = {}
        self.bound_names: set[str] = set()
        for tree in trees:
            self.bound_names |= set(_bound_names(tree))
            for statement in _without_docstring(tree.body):
                self._add_definition(statement)
        for tree in trees:
            self.aliases |= dict(_aliases(tree))
        for alias, full_name in self.aliases.items():
            module, _, name_in_module = full_name.rpartition(".")
            if alias != name_in_module and module.rpartition(".")[2] in self.module_names:
                self.definitions.setdefault(alias, []).extend(
                    self.definitions.get(name_in_module, ())
                )

    def _add_definition(self, statement: ast.stmt) -> None:
        """Keep a statement under each name that it defines, or among those that define none."""
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return
        defined_names = _defined_names(statement)
        for defined_name in defined_names:
            self.definitions.setdefault(defined_name, []).append(statement)
        if not defined_names:
            self.other_statements.append(statement)

    def digest(self, class_name: str) -> str:
        """Return the shape of a class: a digest of its code and of all that it uses."""
        used_statements: dict[int, ast.stmt] = {
            id(statement): statement for statement in self.other_statements
        }
        pending = [
            class_name,
            *(name for statement in self.other_statements for name in _used_names(statement)),
        ]
        digested_names: set[str] = set()
        while pending:
            used_name = pending.pop()
            if used_name in digested_names:
                continue
            digested_names.add(used_name)
            for statement in self.definitions.get(used_name, ()):
                used_statements[id(statement)] = statement
                pending += _used_names(statement)
        class_code = [
            self._digested_text(definition) for definition in self.definitions.get(class_name, ())
        ]
        used_code = sorted(self._digested_text(statement) for statement in used_statements.values())
        return hashlib.sha256(json.dumps([class_code, used_code]).encode()).hexdigest()

    def _digested_text(self, statement: ast.stmt) -> str:
        """Return a statement in the form that is digested, as JSON."""
        return json.dumps(self._as_lists(statement))

    def _as_lists(self, node: Any) -> Any:  # a field of a syntax tree
        """Return a part of a syntax tree as nested lists, equal in every version of Python."""
        if isinstance(node, list):
            return [self._as_lists(child) for child in node if not isinstance(child, ast.Pass)]
        if not isinstance(node, ast.AST):
            return repr(node)
        if isinstance(node, ast.arg):
            return ["arg"]
        digested_name = self._digested_name(node)
        return self._digested_fields(node) if digested_name is None else digested_name

    def _digested_name(self, node: ast.AST) -> Any:
        """Return the digested form of a name, attribute or keyword; None for any other node."""
        if isinstance(node, ast.Name):
            return self._full_name(node.id)
        if isinstance(node, ast.Attribute):
            return self._digested_attribute(self._as_lists(node.value), node.attr)
        if isinstance(node, ast.keyword):
            is_bound = node.arg in self.bound_names
            return ["keyword", _BOUND_NAME if is_bound else node.arg, self._as_lists(node.value)]
        return None

    def _digested_fields(self, node: ast.AST) -> list[Any]:
        """Return the class of a node, and the fields that change what a program computes."""
        if isinstance(node, ast.AnnAssign):  # as the same assignment without a type
            node = ast.Assign([node.target], node.value or ast.Constant(None))
        fields: list[Any] = [type(node).__name__]
        for field_name, field in ast.iter_fields(node):
            if field_name in _IGNORED_FIELDS or field is None or field == []:
                continue
            is_body = field_name == "body" and isinstance(node, _Definition)
            field_lists = self._as_lists(_without_docstring(field) if is_body else field)
            if is_body and isinstance(node, ast.ClassDef):
                field_lists = sorted(field_lists, key=json.dumps)
            fields.append([field_name, field_lists])
        return fields

    def _digested_attribute(self, owner: Any, attribute: str) -> Any:
        """Return the digested form of `owner.attribute`, where `owner` is in digested form."""
        if owner == _BOUND_NAME and attribute in self.definitions:
            return _BOUND_NAME  # `module.name` equals a name that was imported from that module
        return ["Attribute", owner, _BOUND_NAME if attribute in self.bound_names else attribute]

    def _full_name(self, name: str) -> Any:
        """Return `_BOUND_NAME` if the modules bind a name, else its full name without alias."""
        if name not in self.aliases:
            return _BOUND_NAME if name in self.bound_names or name in self.module_names else name
        first, *attributes = self.aliases[name].lstrip(".").split(".")
        if first in self.module_names or (attributes and not first):
            return _BOUND_NAME
        digested: Any = first
        for attribute in attributes:
            digested = self._digested_attribute(digested, attribute)
        return digested


def _without_docstring(body: list[Any]) -> list[Any]:
    """Return statements without docstrings and other expressions that are constants."""
    return [
        statement
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]


def _defined_names(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at the top level of a module defines."""
    if isinstance(statement, _Definition):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return [
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
    return []


def _used_names(statement: ast.stmt) -> list[str]:
    """Return every name and every attribute that a statement contains."""
    return [
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(statement)
        if isinstance(node, ast.Name | ast.Attribute)
    ]


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Yield each name that a module binds: definitions, arguments, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, _Definition):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, with the full name of what it imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"


BUILTIN_PREFIX = "builtin:"
"""Beginning of the path of an extractor that the harness contains."""
IGNORED_FOLDER = "__pycache__"
"""Folder of Python's cache, which imports write. It is not digested, and the sandbox does not read
it."""
FOLDER_FILES_MAX = 1000
"""Largest number of files in the folder of extractors; each may be as large as a submission."""
FOLDER_BYTES_MAX = 1 << 25
"""Largest total size of the files in the folder of extractors, in bytes."""
_PLAIN_FILES_FIX = "keep only plain source files in the folder of extractors"


class ExtractorFolder(NamedTuple):
    """The files of a repository's folder of extractors at the time of reading."""

    folder: Path
    """The folder of extractors itself."""
    root: Path
    """Root of the repository, to which paths in a commitment are relative."""
    files: dict[str, bytes]
    """Content of each file, by its path below the folder, with slashes; in order of path."""


def read_extractors(layout: Layout) -> ExtractorFolder | None:
    """Return the content of a repository's folder of extractors; None if it has no such folder.

    Raises AuditRefused for a link, a file that is too large or irregular, and for more than
    `FOLDER_FILES_MAX` files or `FOLDER_BYTES_MAX` bytes.
    """
    if layout.extractors is None:
        return None
    return ExtractorFolder(layout.extractors, layout.root, tree_files(layout.extractors))


def tree_files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, by its path below it, in order of path.

    Raises what `read_extractors` raises.
    """
    contents: dict[str, bytes] = {}
    size = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != IGNORED_FOLDER)
        for name in (*files, *(name for name in folders if (Path(parent) / name).is_symlink())):
            path = Path(parent) / name
            raw = read_bytes(path)
            if isinstance(raw, Fault):
                raise AuditRefused(f"{path}: {raw.message}", _PLAIN_FILES_FIX)
            contents[path.relative_to(folder).as_posix()] = raw
            size += len(raw)
            if len(contents) > FOLDER_FILES_MAX:
                raise AuditRefused(
                    f"{folder}: contains more than {FOLDER_FILES_MAX} files", _PLAIN_FILES_FIX
                )
            if size > FOLDER_BYTES_MAX:
                raise AuditRefused(
                    f"{folder}: contains more than {FOLDER_BYTES_MAX:,} bytes", _PLAIN_FILES_FIX
                )
    return dict(sorted(contents.items()))


def tree_digest(files: Mapping[str, bytes]) -> str:
    """Return a digest of all files: the SHA-256 of a line `<sha256>  <name>` for each, by name."""
    lines = [f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def extractor_code(
    folder: ExtractorFolder | None,
    path: str,
    class_name: str,
    claimed_sha256: str | None,
    options: Mapping[str, str],
) -> ExtractorCode:
    """Return the extractor of a run for a commitment, with digests of the folder of extractors.

    `claimed_sha256` is the digest of the module as the run states it, or None. Only the last part
    of `path` is used, so that it cannot lead out of the folder. Raises AuditRefused when the module
    is missing or has another digest.
    """
    if path.startswith(BUILTIN_PREFIX):
        if claimed_sha256 is None:
            raise AuditRefused(
                f"the submission names {path} without the digest of its source",
                "ask for the file of format 1.1 that the harness writes, which has the digest",
            )
        return ExtractorCode(
            path=path,
            class_name=class_name,
            sha256=claimed_sha256,
            options=dict(sorted(options.items())),
            tree=tree_digest({}),
        )
    file_name = path.rsplit("/", 1)[-1]
    if folder is None:
        raise AuditRefused(
            f"the extractor {file_name!r} cannot be found: the submission is in no repository",
            "put the submission and its extractor into a checkout of the board, and audit it there",
        )
    if file_name not in folder.files:
        raise AuditRefused(
            f"{folder.folder}: there is no extractor {file_name!r}",
            f"add the module that ran to this folder, as {file_name}",
        )
    sha256 = hashlib.sha256(folder.files[file_name]).hexdigest()
    if claimed_sha256 not in {None, sha256}:
        raise AuditRefused(
            f"the extractor {file_name!r} is not the one that ran: sha256 {sha256}, expected "
            f"{claimed_sha256}{line_ends_clause(folder.files[file_name], str(claimed_sha256))}",
            "ask for the extractor exactly as it ran, or for a new run",
        )
    return ExtractorCode(
        path=Path(os.path.relpath(folder.folder / file_name, folder.root)).as_posix(),
        class_name=class_name,
        sha256=sha256,
        options=dict(sorted(options.items())),
        tree=tree_digest(folder.files),
        shape=code_shape(folder.files, file_name, class_name),
    )


class BuiltInExtractor(NamedTuple):
    """A built-in extractor of the installed harness."""

    path: str
    """Its path in a submission, `builtin:NAME`."""
    class_name: str
    sha256: str
    """Digest of its source, as the harness writes it into submissions."""


@functools.cache
def built_in_extractor(path: str) -> BuiltInExtractor:
    """Return the built-in extractor `builtin:NAME` of the installed harness.

    Raises AuditRefused if the harness has no extractor of that name, or is not installed.
    """
    process = subprocess.run(  # noqa: S603 (our own words, and a name of the maintainers)
        [*module_command("reference_harness"), "extractors", "digest", path],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise AuditRefused(
            f"{path}: the harness gave no digest of this extractor: "
            f"{' '.join(process.stderr.split())[-200:]}",
            "correct the extractor in the entry of the model registry; if the harness is missing: "
            "pip install 'geneb-ci[audit]'",
        )
    return BuiltInExtractor(**json.loads(process.stdout))


def write_modules(modules: Mapping[str, bytes], folder: Path) -> None:
    """Write modules into a folder for the sandbox.

    `modules` has the bytes from which the code digest was computed, by file name.
    """
    for file_name, raw in modules.items():
        path = folder / file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
