"""Finds an extractor by name or by `MODULE:CLASS`, builds it and describes it.

A community module says `from .base import BaseEmbeddingExtractor` and lies in a folder that need
not be a package. Each folder gets a package of its own in `sys.modules`, under a name made of the
folder's path, in which `.base` is ours; `sys.path` is left alone, so that a file called
`random.py` beside an extractor shadows nothing. This isolates names, not code: a module that is
loaded runs with all the rights of this process.
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
from typing import Any, NamedTuple

from reference_harness.formats.files import file_sha256

from .description import UNIT, describe
from .extractors import BUILTINS, base
from .extractors.base import (
    BaseEmbeddingExtractor,
    ExtractorError,
    SignatureError,
    UnknownOptionError,
)
from .formats.packages import lock_beside
from .formats.recognition import disguise_of

FOLDERS = ("submissions/extractors", "harness/extractors", ".")
"""Where a dotted `module:Class` is looked for: this repository, an upstream checkout, here."""

_PACKAGE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class LoadedExtractor:
    """An extractor and its description for the run record."""

    extractor: BaseEmbeddingExtractor
    path: str
    """`builtin:<name>`, or the path of the module as it was given."""
    class_name: str
    sha256: str
    """64 hex digits: of the module's bytes as they were run, or of a built-in's source files."""
    description: dict[str, Any]
    """`model` and `embedding` in the words of submission format 1.1, less `dim`. What the
    extractor does not declare is "undeclared", which format 1.1 takes for `layer` and `pooling`
    alone: `undeclared` lists what its author has to add before a 1.1 submission can be written."""
    undeclared: tuple[str, ...]
    lock_sha256: str | None = None
    """Of the lock that lies beside the module, if one does."""

    @property
    def is_unit(self) -> bool:
        """Whether the harness divides each embedding by the root mean square of its values."""
        return bool(self.description["embedding"].get("scale") == UNIT)

    @property
    def siblings(self) -> dict[str, str]:
        """File name to sha256 of the modules of the same folder that are loaded by now."""
        package = type(self.extractor).__module__.rpartition(".")[0]
        files = {
            Path(module.__file__)
            for name, module in sys.modules.items()
            if name.startswith(f"{package}.") and module.__file__
        }
        own_files = {Path(str(sys.modules[type(self.extractor).__module__].__file__))}
        if self.path.startswith("builtin:") or not package:
            return {}
        return {file.name: file_sha256(file) for file in sorted(files - own_files) if file != _BASE}


_BASE = Path(str(base.__file__))


def load(
    spec: str,
    name_model: str = "",
    device: str = "cpu",
    *,
    folder: str | Path | None = None,
    **options: Any,  # each extractor has options of its own
) -> LoadedExtractor:
    """Build the extractor `spec` for a model on a device.

    `spec` is a name of `BUILTINS`, `path/to/module.py:Class` or `module:Class`, the last being
    looked for in `folder`, by default the first of `FOLDERS` that has it. `options` go to the
    constructor by keyword.

    Raises ExtractorError when nothing of that name is found, when the module cannot be imported
    or when the constructor fails; the cause is chained. It is a SignatureError where the class does
    not have the two methods of the interface.
    """
    name = spec.removeprefix("builtin:")
    lock: Path | None = None
    if name in BUILTINS:
        path, class_name, sha256 = built_in(name)
        module = importlib.import_module(f".extractors.{BUILTINS[name].stem}", __package__)
        cls = getattr(module, class_name)
    else:
        path, class_name, file = _locate(spec, folder)
        cls, sha256 = _import_class(file, class_name)
        lock = lock_beside(file)
    extractor = _build(cls, path, name_model=name_model, device=device, **options)
    description, undeclared = describe(extractor, name_model)
    return LoadedExtractor(
        extractor=extractor,
        path=path,
        class_name=class_name,
        sha256=sha256,
        description=description,
        undeclared=undeclared,
        lock_sha256=file_sha256(lock) if lock is not None and lock.is_file() else None,
    )


class BuiltIn(NamedTuple):
    """Name and digest by which a submission identifies a built-in extractor."""

    path: str
    class_name: str
    sha256: str


def built_in(name: str) -> BuiltIn:
    """Return path, class and digest of a built-in extractor, without importing it."""
    builtin = BUILTINS[name]
    files = [
        _PACKAGE / "extractors" / f for f in ("base.py", f"{builtin.stem}.py", *builtin.helpers)
    ]
    return BuiltIn(f"builtin:{name}", builtin.class_name, _sha256_of_files(files))


def locate(spec: str, folder: str | Path | None = None) -> Path:
    """Return the file of an extractor, without running it."""
    name = spec.removeprefix("builtin:")
    if name in BUILTINS:
        return _PACKAGE / "extractors" / f"{BUILTINS[name].stem}.py"
    return _locate(spec, folder)[2]


def _locate(spec: str, folder: str | Path | None) -> tuple[str, str, Path]:
    module, colon, class_name = spec.rpartition(":")
    if not colon or not module or not class_name.isidentifier():
        import difflib  # for an error alone

        close = difflib.get_close_matches(spec.casefold(), BUILTINS, n=1)
        hint = f"did you mean {close[0]!r}? Or " if close else ""
        msg = (
            f"extractor {spec!r} is neither a built-in ({', '.join(BUILTINS)}) nor MODULE:CLASS: "
            f"{hint}write for example submissions/extractors/mine.py:MyExtractor"
        )
        raise ExtractorError(msg)
    if module.endswith(".py"):
        candidates = [Path(module)]
    else:
        folders = FOLDERS if folder is None else (folder,)
        candidates = [Path(f, *module.split(".")).with_suffix(".py") for f in folders]
    for file in candidates:
        if file.is_file():
            return module if module.endswith(".py") else file.as_posix(), class_name, file
    looked = ", ".join(str(file) for file in candidates)
    msg = f"extractor {spec!r}: no such file ({looked}); name the module by its path from here"
    raise ExtractorError(msg)


class _Loader(SourceLoader):
    """Runs the bytes that were hashed: no second read, no cached bytecode, none written."""

    def __init__(self, file: Path, data: bytes) -> None:
        self._file = file
        self._data = data

    def get_filename(self, fullname: str) -> str:
        del fullname
        return str(self._file)

    def get_data(self, path: str | bytes) -> bytes:
        del path
        return self._data


def _import_class(file: Path, class_name: str) -> tuple[type, str]:
    file = file.resolve()
    data = file.read_bytes()
    if (disguise := disguise_of(data, markup=True)) is not None:
        msg = f"{file.name} {disguise.predicate}, not a module of Python: {disguise.fix}"
        raise ExtractorError(msg)
    package = _package(file.parent)
    name = f"{package}.{file.stem}"
    spec = importlib.util.spec_from_loader(name, _Loader(file, data))
    if spec is None or file == file.parent / "base.py":
        msg = f"{file.name} holds the interface, not an extractor: name the module of a subclass"
        raise ExtractorError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]  # it is the _Loader above
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        msg = f"{file.name} cannot be imported: {_say(error)}; correct the module"
        raise ExtractorError(msg) from error
    cls = getattr(module, class_name, None)
    if not isinstance(cls, type) or not callable(getattr(cls, "extract_embeddings", None)):
        classes = sorted(
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == name
        )
        msg = (
            f"{file.name} has no class {class_name} with a method extract_embeddings; "
            f"its classes are: {', '.join(classes) or 'none'}"
        )
        raise ExtractorError(msg)
    return cls, hashlib.sha256(data).hexdigest()


def _package(folder: Path) -> str:
    """Make the folder's package, in which `.base` is ours, and return its name."""
    name = f"_geneb_extractors_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        package = ModuleType(name, f"Extractors of {folder}")
        package.__path__ = [str(folder)]
        package.base = base  # type: ignore[attr-defined]  # for `from . import base`
        sys.modules[name] = package
        sys.modules[f"{name}.base"] = base
    return name


_ALWAYS = frozenset({"name_model", "device"})
"""Arguments of each constructor, which no option names."""


def _build(cls: Any, path: str, **keywords: Any) -> BaseEmbeddingExtractor:
    _refuse_unknown(cls, path, keywords)
    _refuse_other_methods(cls, path, keywords)
    try:
        extractor: BaseEmbeddingExtractor = cls(**keywords)
    except ExtractorError:
        raise
    except Exception as error:
        options_text = ", ".join(keywords)
        msg = (
            f"{path}:{cls.__name__}({options_text}) failed: {_say(error)}; correct the constructor"
        )
        raise ExtractorError(msg) from error
    return extractor


def _refuse_unknown(cls: Any, path: str, keywords: Mapping[str, Any]) -> None:
    """Raise UnknownOptionError for an option that the constructor does not take."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):  # a class of C says nothing: its constructor will
        return
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in keywords:
        if name not in parameters and name not in _ALWAYS:
            option_names = [option for option in parameters if option not in _ALWAYS]
            msg = (
                f"{path}:{cls.__name__} has no option {name!r}; "
                f"its options are: {', '.join(option_names) or 'none'}"
            )
            raise UnknownOptionError(msg)


_EMBED = "def extract_embeddings(self, sequences, batch_size=1):"
_INIT = 'def __init__(self, name_model, device="cpu"):'


def _refuse_other_methods(cls: Any, path: str, keywords: Mapping[str, Any]) -> None:
    """Raise SignatureError for a class whose methods do not take what the harness passes."""
    if "extract_embeddings" in getattr(cls, "__abstractmethods__", ()):
        methods = [name for name, value in vars(cls).items() if inspect.isfunction(value)]
        defined = f"defines {', '.join(methods)}, but" if methods else "has"
        msg = f"{path}:{cls.__name__} {defined} no extract_embeddings; write {_EMBED}"
        raise SignatureError(msg)
    method = inspect.getattr_static(cls, "extract_embeddings")
    if inspect.isfunction(method):
        _require_call(method, path, _EMBED, (None, []), {"batch_size": 1})
    if inspect.isfunction(cls.__init__):
        _require_call(cls.__init__, path, _INIT, (None,), keywords)


def _require_call(
    method: FunctionType, path: str, expected: str, values: tuple[Any, ...], keywords: Any
) -> None:
    """Raise SignatureError where a method cannot be called with these values and keywords."""
    signature = inspect.signature(method)
    try:
        signature.bind(*values, **keywords)
    except TypeError as error:
        called = ", ".join([*("sequences" for _ in values[1:]), *(f"{k}=..." for k in keywords)])
        names = ", ".join(
            str(parameter.replace(annotation=inspect.Parameter.empty))
            for parameter in signature.parameters.values()
        )
        msg = (
            f"{path}, line {method.__code__.co_firstlineno}: {method.__name__}({names}) cannot be "
            f"called as {method.__name__}({called}): {error}; write {expected}"
        )
        raise SignatureError(msg) from error


def _say(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _sha256_of_files(files: list[Path]) -> str:
    """Digest of one line a file, `<sha256>  <name>`, in order of name, as `sha256sum` prints."""
    lines = sorted(f"{file_sha256(file)}  {file.name}\n" for file in files)
    return hashlib.sha256("".join(sorted(lines, key=lambda x: x[66:])).encode()).hexdigest()
