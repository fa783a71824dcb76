"""Find an extractor by name or by `MODULE:CLASS`, build it and describe it.

A community module contains `from .base import BaseEmbeddingExtractor` and is in a folder that need
not be a package. Each folder gets its own package in `sys.modules`, named after its path, whose
`.base` is the harness's. `sys.path` is not changed, so that a file called `random.py` next to an
extractor shadows no library. This isolates names, not code: a loaded module has all the rights of
this process.
"""

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.abc import SourceLoader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from reference_harness.extractors import BUILTINS, base
from reference_harness.extractors.base import (
    BaseEmbeddingExtractor,
    ExtractorError,
    SignatureError,
    UnknownOptionError,
)
from reference_harness.formats.files import file_sha256
from reference_harness.formats.package_lock import lock_beside
from reference_harness.formats.recognition import disguise_of

from .built_in import built_in_identity
from .description import UNIT_SCALE, describe

EXTRACTOR_FOLDERS = ("submissions/extractors", "harness/extractors", ".")
"""Folders in which a dotted `module:Class` is searched: those for extractors in this repository and
in upstream's, and the current folder."""

_PACKAGE = Path(__file__).parents[1]
"""Folder of the harness."""


@dataclass(frozen=True, kw_only=True)
class LoadedExtractor:
    """An extractor and its description for the run record."""

    extractor: BaseEmbeddingExtractor
    """The object that embeds."""
    path: str
    """`builtin:<name>`, or the path of the module as given."""
    class_name: str
    """Name of its class."""
    sha256: str
    """64 hex digits: the digest of the module's bytes, or of a built-in's source files."""
    description: dict[str, Any]
    """`model` and `embedding` in the terms of submission format 1.1, without `dim`.

    Undeclared values are "undeclared", which format 1.1 allows only for `layer` and `pooling`: the
    author must add those in `undeclared` before a submission of format 1.1 can be written.
    """
    undeclared: tuple[str, ...]
    """Names of the fields of `description` that the extractor does not declare."""
    lock_sha256: str | None = None
    """Digest of the lock next to the module; None if there is no lock."""

    @property
    def is_unit(self) -> bool:
        """Whether the harness divides each embedding by the root mean square of its values."""
        return bool(self.description["embedding"].get("scale") == UNIT_SCALE)

    @property
    def siblings(self) -> dict[str, str]:
        """SHA-256 of each other loaded module of the same folder, by file name."""
        package = type(self.extractor).__module__.rpartition(".")[0]
        files = {
            Path(module.__file__)
            for name, module in sys.modules.items()
            if name.startswith(f"{package}.") and module.__file__
        }
        own_files = {Path(str(sys.modules[type(self.extractor).__module__].__file__))}
        if self.path.startswith("builtin:") or not package:
            return {}
        return {
            file.name: file_sha256(file)
            for file in sorted(files - own_files)
            if file != _INTERFACE_FILE
        }


_INTERFACE_FILE = Path(str(base.__file__))
"""The module that defines the interface of extractors."""


def load(
    spec: str,
    name_model: str = "",
    device: str = "cpu",
    *,
    folder: str | Path | None = None,
    **options: Any,  # each extractor has options of its own
) -> LoadedExtractor:
    """Return the extractor `spec`, built for a model on a device.

    `spec` is a name of `BUILTINS`, `path/to/module.py:Class` or `module:Class`. The last is
    searched in `folder`, by default in each of `EXTRACTOR_FOLDERS`. `name_model`, the Hub
    repository or folder of the weights or "", is passed to the constructor, as `device` and
    `options` are.

    Raise ExtractorError if nothing of that name is found, the module cannot be imported or the
    constructor fails, with the cause chained; SignatureError if the class lacks a method of the
    interface.
    """
    short_name = spec.removeprefix("builtin:")
    package_lock: Path | None = None
    if short_name in BUILTINS:
        path, class_name, sha256 = built_in_identity(short_name)
        module = importlib.import_module(
            f"reference_harness.extractors.{BUILTINS[short_name].module_name}"
        )
        extractor_class = getattr(module, class_name)
    else:
        path, class_name, file = _locate(spec, folder)
        extractor_class, sha256 = _import_class(file, class_name)
        package_lock = lock_beside(file)
    extractor = _build(extractor_class, path, name_model=name_model, device=device, **options)
    description, undeclared = describe(extractor, name_model)
    return LoadedExtractor(
        extractor=extractor,
        path=path,
        class_name=class_name,
        sha256=sha256,
        description=description,
        undeclared=undeclared,
        lock_sha256=(
            file_sha256(package_lock)
            if package_lock is not None and package_lock.is_file()
            else None
        ),
    )


def locate(spec: str, folder: str | Path | None = None) -> Path:
    """Return the file of an extractor, without importing it."""
    short_name = spec.removeprefix("builtin:")
    if short_name in BUILTINS:
        return _PACKAGE / "extractors" / f"{BUILTINS[short_name].module_name}.py"
    return _locate(spec, folder)[2]


def _locate(spec: str, folder: str | Path | None) -> tuple[str, str, Path]:
    """Return the module's path as recorded, the class name and the module's file.

    Raise ExtractorError if there is no such file.
    """
    module, colon, class_name = spec.rpartition(":")
    if not colon or not module or not class_name.isidentifier():
        import difflib  # for an error alone

        similar_names = difflib.get_close_matches(spec.casefold(), BUILTINS, n=1)
        hint = f"did you mean {similar_names[0]!r}? Or " if similar_names else ""
        msg = (
            f"extractor {spec!r} is neither a built-in ({', '.join(BUILTINS)}) nor MODULE:CLASS: "
            f"{hint}write for example submissions/extractors/mine.py:MyExtractor"
        )
        raise ExtractorError(msg)
    if module.endswith(".py"):
        candidates = [Path(module)]
    else:
        folders = EXTRACTOR_FOLDERS if folder is None else (folder,)
        candidates = [Path(f, *module.split(".")).with_suffix(".py") for f in folders]
    for file in candidates:
        if file.is_file():
            return module if module.endswith(".py") else file.as_posix(), class_name, file
    tried_files = ", ".join(str(file) for file in candidates)
    msg = f"extractor {spec!r}: no such file ({tried_files}); pass the path of the module"
    raise ExtractorError(msg)


class _Loader(SourceLoader):
    """Runs the bytes that were hashed, without a second read or cached bytecode."""

    def __init__(self, file: Path, source: bytes) -> None:
        """Store the path of the module and its bytes."""
        self._file = file
        self._data = source

    def get_filename(self, fullname: str) -> str:
        """Return the path of the module."""
        del fullname
        return str(self._file)

    def get_data(self, path: str | bytes) -> bytes:
        """Return the bytes of the module that were hashed, whatever the path."""
        del path
        return self._data


def _import_class(file: Path, class_name: str) -> tuple[type, str]:
    """Return the class in a module's file, and the SHA-256 of the bytes that were run."""
    file = file.resolve()
    source = file.read_bytes()
    if (disguise := disguise_of(source, markup=True)) is not None:
        msg = f"{file.name} {disguise.predicate}, not a module of Python: {disguise.fix}"
        raise ExtractorError(msg)
    package = _package(file.parent)
    module_name = f"{package}.{file.stem}"
    spec = importlib.util.spec_from_loader(module_name, _Loader(file, source))
    if spec is None or file == file.parent / "base.py":
        msg = f"{file.name} contains the interface, not an extractor: name the module of a subclass"
        raise ExtractorError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]  # the loader is a _Loader
    except BaseException as error:
        del sys.modules[module_name]
        if not isinstance(error, Exception | SystemExit):
            raise
        msg = f"{file.name} cannot be imported: {_error_text(error)}; correct the module"
        raise ExtractorError(msg) from error
    cls = getattr(module, class_name, None)
    if not isinstance(cls, type) or not callable(getattr(cls, "extract_embeddings", None)):
        classes = sorted(
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module_name
        )
        msg = (
            f"{file.name} has no class {class_name} with a method extract_embeddings; "
            f"its classes are: {', '.join(classes) or 'none'}"
        )
        raise ExtractorError(msg)
    return cls, hashlib.sha256(source).hexdigest()


def _package(folder: Path) -> str:
    """Create the folder's package, whose `.base` is the harness's, and return its name."""
    package_name = f"_geneb_extractors_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    if package_name not in sys.modules:
        package = ModuleType(package_name, f"Extractors of {folder}")
        package.__path__ = [str(folder)]
        package.base = base  # type: ignore[attr-defined]  # for `from . import base`
        sys.modules[package_name] = package
        sys.modules[f"{package_name}.base"] = base
    return package_name


_REQUIRED_ARGUMENTS = frozenset({"name_model", "device"})
"""Arguments that every constructor has; all others are options."""


def _build(cls: Any, path: str, **keywords: Any) -> BaseEmbeddingExtractor:
    """Return an extractor, constructed with these arguments; its errors become ExtractorError."""
    _refuse_unknown_options(cls, path, keywords)
    _refuse_other_signatures(cls, path, keywords)
    try:
        extractor: BaseEmbeddingExtractor = cls(**keywords)
    except ExtractorError:
        raise
    except Exception as error:
        options_text = ", ".join(keywords)
        msg = (
            f"{path}:{cls.__name__}({options_text}) failed: {_error_text(error)}; correct the "
            "constructor"
        )
        raise ExtractorError(msg) from error
    return extractor


def _refuse_unknown_options(cls: Any, path: str, keywords: Mapping[str, Any]) -> None:
    """Raise UnknownOptionError for an option that the constructor does not have."""
    try:
        parameters = inspect.signature(cls).parameters
    except (
        TypeError,
        ValueError,
    ):  # a class in C has no signature; its constructor raises the error
        return
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in keywords:
        if name not in parameters and name not in _REQUIRED_ARGUMENTS:
            option_names = [option for option in parameters if option not in _REQUIRED_ARGUMENTS]
            msg = (
                f"{path}:{cls.__name__} has no option {name!r}; "
                f"its options are: {', '.join(option_names) or 'none'}"
            )
            raise UnknownOptionError(msg)


_EMBED_SIGNATURE = "def extract_embeddings(self, sequences, batch_size=1):"
"""The signature that a message shows if the method differs."""
_INIT_SIGNATURE = 'def __init__(self, name_model, device="cpu"):'
"""The signature that a message shows if the constructor differs."""


def _refuse_other_signatures(cls: Any, path: str, keywords: Mapping[str, Any]) -> None:
    """Raise SignatureError if the class's methods do not accept the harness's arguments."""
    if "extract_embeddings" in getattr(cls, "__abstractmethods__", ()):
        methods = [name for name, value in vars(cls).items() if inspect.isfunction(value)]
        lead = f"defines {', '.join(methods)}, but" if methods else "has"
        msg = f"{path}:{cls.__name__} {lead} no extract_embeddings; write {_EMBED_SIGNATURE}"
        raise SignatureError(msg)
    method = inspect.getattr_static(cls, "extract_embeddings")
    if inspect.isfunction(method):
        _check_signature(method, path, _EMBED_SIGNATURE, (None, []), {"batch_size": 1})
    if inspect.isfunction(cls.__init__):
        _check_signature(cls.__init__, path, _INIT_SIGNATURE, (None,), keywords)


def _check_signature(
    method: FunctionType, path: str, expected: str, arguments: tuple[Any, ...], keywords: Any
) -> None:
    """Raise SignatureError if a method cannot be called with these values and keywords."""
    signature = inspect.signature(method)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        arguments_text = ", ".join(
            [*("sequences" for _ in arguments[1:]), *(f"{k}=..." for k in keywords)]
        )
        parameters_text = ", ".join(
            str(parameter.replace(annotation=inspect.Parameter.empty))
            for parameter in signature.parameters.values()
        )
        msg = (
            f"{path}, line {method.__code__.co_firstlineno}: {method.__name__}({parameters_text}) "
            f"cannot be called as {method.__name__}({arguments_text}): {error}; write {expected}"
        )
        raise SignatureError(msg) from error


def _error_text(error: BaseException) -> str:
    """Return the type and text of an error on one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
