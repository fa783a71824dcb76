"""The page: its source files joined into one script and one stylesheet."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath

from geneb_ci.board.texts import DIGEST_DIGITS, script_part
from geneb_ci.common.errors import BrokenInstallation, unwritable
from geneb_ci.common.files import write_files
from geneb_ci.common.shipped import shipped

SOURCE_FOLDER = "src/"
"""Folder of the modules and stylesheets from which the page's script and style are made."""
SCRIPT, MAIN_SCRIPT = "board.js", "src/main.js"
STYLE, MAIN_STYLE = "board.css", "src/main.css"
PAGES_STYLE = "src/pages.css"
"""The stylesheet of the pages without JavaScript, which every build makes."""

INDEX, BASE = "index.html", "data"
"""File name of the page, and name of the part of its data that index.html loads at first."""

_GENERATED_NOTE = (
    "Generated from leaderboard/src by geneb-ci: change the parts there, not this file."
)
"""Comment in the generated script and stylesheets."""
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
"""A line that imports names from another module."""
_EXPORT = re.compile(r"^export (?=(?:const|function) )", re.MULTILINE)
"""The word `export` before a definition."""
_EXPORTED = re.compile(r"^export (?:const|function) (\w+)", re.MULTILINE)
"""The definition of an exported name."""
_IMPORT_LINE = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
"""Any line that imports or exports."""
_STYLE_IMPORT = re.compile(r'^@import "(\./[^"]+)";\n', re.MULTILINE)
"""A line that imports another stylesheet."""
FIXED_FILES = (
    INDEX,
    "vendor/d3.min.js",
    "vendor/d3.LICENSE.txt",
    "vendor/README.md",
)
"""Paths of the files that every page has beside `SCRIPT` and `STYLE`, relative to its folder."""
SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types geneb"
)
"""Content security policy of the page, also in its head: it may load only its own files."""


def assembled_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the published files of the page, from its files in the repository.

    Names are paths relative to the folder of the page. Files are returned unchanged if there is no
    source among them. Raises BrokenInstallation if a part is missing or an import does not resolve.
    """
    source_files = {path: raw for path, raw in files.items() if path.startswith(SOURCE_FOLDER)}
    page = {path: raw for path, raw in files.items() if path not in source_files}
    if MAIN_SCRIPT in source_files:
        page[SCRIPT] = _assembled_script(source_files).encode()
    if MAIN_STYLE in source_files:
        page[STYLE] = _assembled_style(MAIN_STYLE, source_files).encode()
    return dict(sorted(page.items()))


def _assembled_script(source_files: Mapping[str, bytes]) -> str:
    """Return the modules of the page joined into one script."""
    order = _import_order(MAIN_SCRIPT, source_files, (), {})
    modules = "\n".join(_module_function(path, _source_text(path, source_files)) for path in order)
    return f'/* {_GENERATED_NOTE} */\n"use strict";\n(() => {{\n\n{modules}\n}})();\n'


def _module_function(module: str, code: str) -> str:
    """Return JavaScript that defines a constant for a module: the object of its exports."""
    imports = "".join(
        f"const {{ {', '.join(_imported_names(names))} }} = "
        f"{_module_variable(_resolved_path(module, path))};\n"
        for names, path in _IMPORT.findall(code)
    )
    body = _EXPORT.sub("", _IMPORT.sub("", code)).strip()
    if unsupported := _IMPORT_LINE.search(body):
        raise _broken_source(
            module, f"has an import or export that the bundler does not support: {unsupported[0]}"
        )
    exports = f"return {{ {', '.join(_exported_names(code))} }};"
    begin = f"/* {module} */\nconst {_module_variable(module)} = (() => {{\n"
    return f"{begin}{imports}\n{body}\n\n{exports}\n}})();\n"


def _module_variable(path: str) -> str:
    """Return the name of the JavaScript constant for a module."""
    return "$" + re.sub(r"\W", "_", path.removeprefix(SOURCE_FOLDER).removesuffix(".js"))


def _resolved_path(path: str, imported: str) -> str:
    """Return the path of an imported file, which is relative to the importing one."""
    return normpath(join(dirname(path), imported))


def _imported_names(import_list: str) -> list[str]:
    """Return the names between the braces of an import."""
    return [name.strip() for name in import_list.split(",") if name.strip()]


def _import_order(
    module: str,
    source_files: Mapping[str, bytes],
    importers: tuple[str, ...],
    imports: dict[str, list[str]],
) -> list[str]:
    """Return a module and all modules that it imports, imported ones first.

    `importers` are the modules being resolved; `imports` caches results.
    """
    if module in importers:
        raise _broken_source(
            module, f"is imported in a circle: {' -> '.join([*importers, module])}"
        )
    if module in imports:
        return imports[module]
    imported_modules: dict[str, None] = {}
    for import_list, path in _IMPORT.findall(_source_text(module, source_files)):
        imported_path = _resolved_path(module, path)
        exported_names = _exported_names(_source_text(imported_path, source_files))
        for export in _imported_names(import_list):
            if export not in exported_names:
                raise _broken_source(
                    module, f"imports {export}, which {imported_path} does not export"
                )
        if imported_path not in imported_modules:
            imported_modules |= dict.fromkeys(
                _import_order(imported_path, source_files, (*importers, module), imports)
            )
    imports[module] = [*imported_modules, module]
    return imports[module]


def _exported_names(code: str) -> list[str]:
    """Return the names that a module exports."""
    return _EXPORTED.findall(code)


def _assembled_style(main: str, files: Mapping[str, bytes]) -> str:
    """Return a stylesheet with the stylesheets that it imports."""
    imports = _STYLE_IMPORT.findall(_source_text(main, files))
    part_texts = (_source_text(_resolved_path(main, path), files) for path in imports)
    return "\n".join([f"/* {_GENERATED_NOTE} */\n", *(f"{part.strip()}\n" for part in part_texts)])


def _source_text(path: str, source_files: Mapping[str, bytes]) -> str:
    """Return the text of a source file. Raises BrokenInstallation if it is missing."""
    if path not in source_files:
        raise _broken_source(path, "is missing")
    return source_files[path].decode("utf-8").replace("\r\n", "\n")


def _broken_source(path: str, fault: str) -> BrokenInstallation:
    """Return the error for a source file of the page that is missing or invalid."""
    return BrokenInstallation(
        f"leaderboard/{path} {fault}", "reinstall geneb-ci, or fix the source of the page"
    )


def page_files() -> dict[str, bytes]:
    """Return the files of the page that are the same on every board, by path below its folder.

    Raises BrokenInstallation if one is missing.
    """
    files = {name: shipped("page", name).read_bytes() for name in FIXED_FILES}
    return assembled_files(files | _source_files())


def pages_style() -> bytes:
    """Return the stylesheet of the pages without JavaScript.

    Raises BrokenInstallation if a part of it is missing.
    """
    return _assembled_style(PAGES_STYLE, _source_files()).encode()


def _source_files() -> dict[str, bytes]:
    """Return the source files of the page that ship with the package, by path."""
    folder = shipped("page", MAIN_SCRIPT).parent
    return {
        SOURCE_FOLDER + path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*.*")
    }


def with_data(page: Mapping[str, bytes], scripts: Iterable[str]) -> dict[str, bytes]:
    """Return the files of a page, with an index.html that loads the data of a board.

    The addresses of data, script and style in it contain digests, so that a browser's cache cannot
    return the files of another version. An index.html without the expected addresses, such as a
    maintainer's, is not changed.
    """
    [base_script] = [file_name for file_name in scripts if script_part(file_name) == BASE]
    addresses = {f"board-{BASE}.js": base_script}
    for file_name in (SCRIPT, STYLE):
        if file_name in page:
            digest = hashlib.sha256(page[file_name]).hexdigest()[:DIGEST_DIGITS]
            addresses[file_name] = f"{file_name}?{digest}"
    index = page[INDEX]
    for file_name, address in addresses.items():
        index = index.replace(f'="{file_name}"'.encode(), f'="{address}"'.encode(), 1)
    return {**page, INDEX: index}


def delete_former_scripts(folder: Path, scripts: Iterable[str]) -> None:
    """Delete the scripts with data from the folder of a page, except those named in `scripts`.

    Raises UsageProblem if the folder cannot be changed.
    """
    try:
        for path in folder.iterdir():
            if script_part(path.name) is not None and path.name not in scripts:
                path.unlink()
    except OSError as error:
        raise unwritable(str(folder), error, "name a folder that you may write to") from error


def write_page(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files of the page into a folder and its subfolders.

    Raises what `write_files` raises.
    """
    parents = sorted({PurePosixPath(path).parent for path in files})
    for parent in parents:
        files_of_folder = {
            PurePosixPath(path).name: content
            for path, content in files.items()
            if PurePosixPath(path).parent == parent
        }
        write_files(folder / parent, files_of_folder)
