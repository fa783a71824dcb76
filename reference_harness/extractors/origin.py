"""Where a checkpoint lies, pinned; and which class of it or of transformers is meant."""

import contextlib
import dataclasses
import difflib
import importlib
import importlib.util
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transformers
from transformers.dynamic_module_utils import get_class_from_dynamic_module
from transformers.utils.hub import cached_file

from reference_harness.formats.files import NotReadable, read_json, read_regular
from reference_harness.formats.recognition import ENCODING, disguise_of

from .base import ExtractorError
from .gated_bert import GatedBert
from .janus import Janus
from .options import Options
from .space import Space

OWN_CLASSES = {"gated_bert": GatedBert, "janus": Janus, "space": Space}
"""Models that no package has, written here: `own:NAME` to its class."""
_MAPPED = ("config.json", "tokenizer_config.json")
"""Files whose `auto_map` names classes of a repository's own code."""
_AUTO_TOKENIZER = "AutoTokenizer"
_MARK = "--"
"""Between a repository and a class of its code: `OWNER/NAME--MODULE.CLASS`."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A folder, or a repository of the Hugging Face Hub at a commit."""

    name: str
    revision: str | None
    local: bool
    trust_remote_code: bool
    shadow: str = ""
    """A folder that stands for the checkpoint's own while it is loaded; empty: its own."""

    @property
    def loads_from(self) -> str:
        """The source that `from_pretrained` loads from."""
        return self.shadow or self.name

    @property
    def keywords(self) -> dict[str, Any]:
        """The keywords that every `from_pretrained` is given."""
        common = {"trust_remote_code": self.trust_remote_code, "local_files_only": self.local}
        return common if self.local else {**common, "revision": self.revision}

    def file(self, name: str) -> Path | None:
        """Return a file of the checkpoint, fetched where it has to be, or None."""
        if self.local:
            path = Path(self.name, name)
            return path if path.is_file() else None
        cached = cached_file(
            self.name, name, revision=self.revision, _raise_exceptions_for_missing_entries=False
        )
        return None if cached is None else Path(cached)

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint on this machine."""
        if self.local:
            return Path(self.name)
        return Path(str(cached_file(self.name, "config.json", revision=self.revision))).parent


def origin_of(name: str, revision: str | None, *, trust_remote_code: bool) -> Origin:
    """Return where a model comes from.

    A folder needs no `revision`: its weights are hashed. One may be given all the same, as an audit
    does that repeats a run from the Hub with the folder in which it has verified those files.

    Raises ExtractorError when the revision is no commit.
    """
    local = bool(name) and Path(name).is_dir()
    if not (local and revision is None) and not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        commits_hint = "" if local else f"; copy it from https://huggingface.co/{name}/commits/main"
        msg = (
            f"revision of {name!r} is {revision!r}, expected the 40 hex digits of a commit: a "
            f"branch or tag can move{commits_hint}"
        )
        raise ExtractorError(msg)
    return Origin(name=name, revision=revision, local=local, trust_remote_code=trust_remote_code)


def folder_of(origin: Origin) -> Path | None:
    """Return the folder that has the configuration of a checkpoint; None without one.

    It raises nothing: it is asked where something else has failed.
    """
    try:
        path = origin.file("config.json")
    except Exception:  # noqa: BLE001 (whatever the client of the Hub raises)
        return None
    return None if path is None else path.parent


def check_disguises(origin: Origin) -> None:
    """Refuse a folder in which a file is something else, such as a pointer of Git LFS.

    A library says of it that a header is too large, or reads it as a vocabulary of three words.
    Files of the Hub are what they are. Raises ExtractorError.
    """
    for path in sorted(Path(origin.name).iterdir()) if origin.local else ():
        if path.suffix not in _LOADED or not path.is_file() or path.stat().st_size > _TEXT_MAX:
            continue
        disguise = disguise_of(path.read_bytes(), markup=True)
        if disguise is not None and disguise.kind != ENCODING:
            msg = f"{path.name} of {origin.name!r} {disguise.predicate}: {disguise.fix}"
            raise ExtractorError(msg)


_LOADED = frozenset({".safetensors", ".bin", ".pt", ".json", ".txt", ".model", ".py"})
_TEXT_MAX = 1_000_000
"""Bytes of a file that is read to see what it is; pointers and pages are small."""


def check_code(origin: Origin) -> None:
    """Refuse code of another repository, which is not under the revision that we pin.

    `OWNER/NAME--module.Class` may name the repository itself. What a folder's own repository is
    called is not known: the module then has to be in the folder. Raises ExtractorError.
    """
    for file, reference in _references(origin):
        repository, mark, name = reference.partition(_MARK)
        is_own = (
            origin.file(f"{name.partition('.')[0]}.py") is not None
            if origin.local
            else repository == origin.name
        )
        if mark and not is_own:
            msg = (
                f"{file} of {origin.name!r} takes its code from another repository "
                f"({reference}), which the revision does not pin: copy the code into one "
                "repository"
            )
            raise ExtractorError(msg)


def check_ignored_code(origin: Origin, options: Options) -> None:
    """Refuse a checkpoint whose own code would be ignored, unless trust_remote_code=false says so.

    The library's class then reads the same weights and computes other rows. Classes that are named
    themselves, such as `transformers:BertModel`, are taken at their word. Raises ExtractorError.
    """
    if options.trust_remote_code is False:
        return
    _check_unmapped_code(origin, options)
    code_by_class = {key: (file, reference) for file, key, reference in _mapped(origin)}
    model = _auto_class(options.auto_class)
    other_models = [key for key in code_by_class if key.startswith("AutoModel")]
    if model and options.trust_remote_code and other_models and model not in code_by_class:
        file, reference = code_by_class[other_models[0]]
        msg = (
            f"{file} of {origin.name!r} names code of its own for {other_models[0]} ({reference}) "
            f"and none for {model}, which would load the library's class: declare "
            f"auto_class={other_models[0]}, or trust_remote_code=false for the library's class"
        )
        raise ExtractorError(msg)
    used = [model, "AutoConfig", *other_models] if model else []
    tokenizer = _auto_class(_AUTO_TOKENIZER if options.tokenizer == "auto" else options.tokenizer)
    used += [tokenizer] if options.input != "one_hot_letters" else []
    ignored = next((key for key in used if key in code_by_class), None)
    if ignored is None or options.trust_remote_code:
        return
    file, reference = code_by_class[ignored]
    msg = (
        f"{file} of {origin.name!r} names code of its own for {ignored} ({reference}), and "
        "trust_remote_code is not given, expected true or false, as the library's class gives "
        "other embeddings: read that code and declare trust_remote_code=true, or "
        "trust_remote_code=false to state that the library's class is meant"
    )
    raise ExtractorError(msg)


def _check_unmapped_code(origin: Origin, options: Options) -> None:
    """Refuse a folder with code for the class that its configuration names, and that nothing maps.

    An Auto class goes by `model_type` alone, and would build a class of the library.
    """
    path = origin.file("config.json")
    if not origin.local or path is None or not _auto_class(options.auto_class):
        return
    config = read_json(path.read_bytes())
    if not isinstance(config, dict) or config.get("auto_map"):
        return
    for name in _strings(config.get("architectures")):
        defining_module = (
            None if hasattr(transformers, name) else _defining(Path(origin.name), name)
        )
        if defining_module is not None:
            msg = (
                f"config.json of {origin.name!r} names the class {name}, which "
                f"{defining_module.name} beside it defines, and has no auto_map: the library's "
                "class would be loaded; read that code and declare "
                f"auto_class=repository:{defining_module.stem}.{name} with "
                "trust_remote_code=true, or trust_remote_code=false to state that the library's "
                "class is meant"
            )
            raise ExtractorError(msg)


def _defining(folder: Path, name: str) -> Path | None:
    """Return the module at the top of a folder that defines a class; None without one."""
    statement = re.compile(rb"^class " + re.escape(name).encode() + rb"\b", re.MULTILINE)
    for path in sorted(folder.glob("*.py")):
        try:
            if statement.search(read_regular(path, _CODE_BYTES_MAX)):
                return path
        except NotReadable:
            continue
    return None


_CODE_BYTES_MAX = 10_000_000


def _auto_class(value: str) -> str:
    """Return the Auto class that an option names, in whatever form; "" for another class."""
    leaf = re.split("[:.]", value)[-1]
    return leaf if leaf.startswith("Auto") and not value.startswith(("repository:", "own:")) else ""


@contextlib.contextmanager
def loadable(origin: Origin) -> Iterator[Origin]:
    """Yield a folder whose code is taken from itself, also where it names its repository.

    transformers looks for `OWNER/NAME--module.Class` on the Hub, even if the folder has the module.
    """
    if not origin.local or not any(_MARK in reference for _, reference in _references(origin)):
        yield origin
        return
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as shadow:
        for path in Path(origin.name).resolve().iterdir():
            Path(shadow, path.name).symlink_to(path)
        for file in {file for file, _ in _references(origin)}:
            read = read_json(Path(shadow, file).read_bytes())
            read["auto_map"] = _unmarked(read["auto_map"])
            Path(shadow, file).unlink()
            Path(shadow, file).write_text(json.dumps(read), encoding="utf-8")
        yield dataclasses.replace(origin, shadow=shadow)


def _references(origin: Origin) -> list[tuple[str, str]]:
    """Return each class of the checkpoint's own code, beside the file that names it."""
    return [(file, reference) for file, _, reference in _mapped(origin)]


def _mapped(origin: Origin) -> list[tuple[str, str, str]]:
    """Return file, Auto class and own class of each entry of the checkpoint's `auto_map`.

    Older tokenizer_config.json have the two classes of the tokenizer alone.
    """
    entries_of_files = []
    for file in _MAPPED:
        path = origin.file(file)
        entries = {} if path is None else read_json(path.read_bytes()).get("auto_map")
        class_map = entries if isinstance(entries, dict) else {_AUTO_TOKENIZER: entries}
        entries_of_files += [
            (file, key, name) for key, value in class_map.items() for name in _strings(value)
        ]
    return entries_of_files


def _unmarked(value: object) -> object:
    """Return a nest of texts, each without the repository before its mark."""
    if isinstance(value, str):
        return value.rpartition(_MARK)[2]
    if isinstance(value, dict):
        return {key: _unmarked(member) for key, member in value.items()}
    return [_unmarked(member) for member in value] if isinstance(value, list) else value


def check_class(option: str, value: str, auto: tuple[str, ...]) -> None:
    """Raise unless `value` is one of `auto` or a name that `class_of` reads.

    A class of a package is looked for, and the package not imported.
    """
    if value in auto:
        return
    kind, colon, name = value.partition(":")
    if colon and kind == "own":
        _check_own(option, name)
        return
    if colon and kind == "package" and re.fullmatch(r"\w+(\.\w+)+", name):
        _check_package(option, name)
        return
    if colon and kind == "repository" and re.fullmatch(r"\w+(\.\w+)+", name):
        return
    if colon and kind == "transformers":
        if callable(getattr(getattr(transformers, name, None), "from_pretrained", None)):
            return
        class_names = [each for each in dir(transformers) if each[:1].isupper()]
        close = difflib.get_close_matches(name, class_names, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        msg = f"{option} is {value!r}, and transformers has no such class to load{hint}"
        raise ExtractorError(msg)
    close = difflib.get_close_matches(value, auto, n=1)
    suggestions = close or auto[:1]
    msg = (
        f"{option} is {value!r}, expected {', '.join(suggestions)}, transformers:CLASS, "
        "repository:FILE.CLASS, package:MODULE.CLASS or own:NAME"
    )
    raise ExtractorError(msg)


def _check_own(option: str, name: str) -> None:
    if name not in OWN_CLASSES:
        msg = f"{option} is 'own:{name}', and the harness has: {', '.join(OWN_CLASSES)}"
        raise ExtractorError(msg)


def _check_package(option: str, name: str) -> None:
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        msg = (
            f"{option} is 'package:{name}', and no package {package} is installed here: install "
            "it, or run in the environment that the model's entry names"
        )
        raise ExtractorError(msg)


def class_of(value: str, origin: Origin) -> Any:  # any class of that form
    """Return the class that a checked option names."""
    kind, colon, name = value.partition(":")
    if colon and kind == "own":
        return OWN_CLASSES[name]
    if colon and kind == "package":
        module, _, leaf = name.rpartition(".")
        return _member(importlib.import_module(module), leaf)
    if colon and kind == "repository":
        return get_class_from_dynamic_module(
            name, origin.loads_from, revision=origin.revision, local_files_only=origin.local
        )
    return getattr(transformers, name or kind)


def _member(module: Any, name: str) -> Any:  # any class
    try:
        return getattr(module, name)
    except AttributeError:
        msg = f"package {module.__name__} has no class {name}: compare its version with the entry's"
        raise ExtractorError(msg) from None


def _strings(value: object) -> Iterable[str]:
    """Yield every text of a nest of lists and objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
