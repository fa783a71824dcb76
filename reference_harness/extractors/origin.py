"""The pinned source of a checkpoint, and the classes that options refer to."""

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
"""NAME in `own:NAME` -> class of a model that is in no package and is written here."""
_MAPPING_FILES = ("config.json", "tokenizer_config.json")
"""Files whose `auto_map` may refer to classes in the repository's own code."""
_AUTO_TOKENIZER = "AutoTokenizer"
"""The Auto class for tokenizers."""
_REPOSITORY_SEPARATOR = "--"
"""Separates a repository and a class of its code: `OWNER/NAME--MODULE.CLASS`."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A local folder, or a repository of the Hugging Face Hub at a commit."""

    name: str
    """Path of the folder, or name of the repository."""
    revision: str | None
    """Commit of the repository; None for a folder."""
    is_local: bool
    """Whether it is a folder."""
    trust_remote_code: bool
    """Whether code of the checkpoint may be run."""
    linked_folder: str = ""
    """Temporary folder of links to the checkpoint's files, which is loaded instead; "": none."""

    @property
    def loads_from(self) -> str:
        """The first argument of `from_pretrained`: a folder, or the name of a repository."""
        return self.linked_folder or self.name

    @property
    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of every call of `from_pretrained`."""
        arguments = {"trust_remote_code": self.trust_remote_code, "local_files_only": self.is_local}
        return arguments if self.is_local else {**arguments, "revision": self.revision}

    def file(self, name: str) -> Path | None:
        """Return a file of the checkpoint, downloaded if necessary; None if it does not exist."""
        if self.is_local:
            path = Path(self.name, name)
            return path if path.is_file() else None
        cached = cached_file(
            self.name, name, revision=self.revision, _raise_exceptions_for_missing_entries=False
        )
        return None if cached is None else Path(cached)

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint on this machine."""
        if self.is_local:
            return Path(self.name)
        return Path(str(cached_file(self.name, "config.json", revision=self.revision))).parent


def origin_of(location: str, revision: str | None, *, trust_remote_code: bool) -> Origin:
    """Return the source of a model.

    A folder needs no `revision`, as its weights are hashed. It may still have one: an audit repeats
    a run from the Hub with a folder of verified files. Raise ExtractorError if the revision is no
    commit.
    """
    is_local = bool(location) and Path(location).is_dir()
    if not (is_local and revision is None) and not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        commits_hint = (
            "" if is_local else f"; copy it from https://huggingface.co/{location}/commits/main"
        )
        msg = (
            f"revision of {location!r} is {revision!r}, expected the 40 hex digits of a commit: a "
            f"branch or tag can move{commits_hint}"
        )
        raise ExtractorError(msg)
    return Origin(
        name=location, revision=revision, is_local=is_local, trust_remote_code=trust_remote_code
    )


def configuration_folder(origin: Origin) -> Path | None:
    """Return the folder with the configuration of a checkpoint; None without one.

    It raises nothing, as it is called when something else has failed.
    """
    try:
        path = origin.file("config.json")
    except Exception:  # noqa: BLE001 (whatever the client of the Hub raises)
        return None
    return None if path is None else path.parent


def check_disguises(origin: Origin) -> None:
    """Raise ExtractorError if a file of a local folder is another file, such as a Git LFS pointer.

    Libraries report such a file by unclear errors, or read it as a vocabulary of three words. Files
    from the Hub cannot be pointers.
    """
    for path in sorted(Path(origin.name).iterdir()) if origin.is_local else ():
        if (
            path.suffix not in _INSPECTED_ENDINGS
            or not path.is_file()
            or path.stat().st_size > _TEXT_MAX
        ):
            continue
        disguise = disguise_of(path.read_bytes(), markup=True)
        if disguise is not None and disguise.kind != ENCODING:
            msg = f"{path.name} of {origin.name!r} {disguise.predicate}: {disguise.fix}"
            raise ExtractorError(msg)


_INSPECTED_ENDINGS = frozenset({".safetensors", ".bin", ".pt", ".json", ".txt", ".model", ".py"})
"""Endings of files whose beginning is searched for signs of another file."""
_TEXT_MAX = 1_000_000
"""Largest file, in bytes, whose content is inspected; pointers and web pages are small."""


def check_code(origin: Origin) -> None:
    """Raise ExtractorError for code of another repository, which the revision does not pin.

    In `OWNER/NAME--module.Class`, OWNER/NAME may be the repository itself. A local folder does not
    tell its repository: there, the module must be in the folder.
    """
    for file, reference in _own_class_references(origin):
        repository, separator, class_name = reference.partition(_REPOSITORY_SEPARATOR)
        is_own_code = (
            origin.file(f"{class_name.partition('.')[0]}.py") is not None
            if origin.is_local
            else repository == origin.name
        )
        if separator and not is_own_code:
            msg = (
                f"{file} of {origin.name!r} uses code of another repository "
                f"({reference}), which the revision does not pin: copy the code into one "
                "repository"
            )
            raise ExtractorError(msg)


def check_ignored_code(origin: Origin, options: Options) -> None:
    """Raise ExtractorError if a checkpoint's own code would be ignored, unless this is declared.

    The library's class would read the same weights and compute other embeddings. The user declares
    it by `trust_remote_code=False`, or by its name, as in `transformers:BertModel`.
    """
    if options.trust_remote_code is False:
        return
    _check_unmapped_code(origin, options)
    code_by_auto_class = {
        key: (file, reference) for file, key, reference in _auto_map_entries(origin)
    }
    model_class = _auto_class(options.auto_class)
    mapped_models = [key for key in code_by_auto_class if key.startswith("AutoModel")]
    if (
        model_class
        and options.trust_remote_code
        and mapped_models
        and model_class not in code_by_auto_class
    ):
        file, reference = code_by_auto_class[mapped_models[0]]
        msg = (
            f"{file} of {origin.name!r} has its own code for {mapped_models[0]} ({reference}), "
            f"but none for {model_class}, which would load the library's class: declare "
            f"auto_class={mapped_models[0]}, or trust_remote_code=false for the library's class"
        )
        raise ExtractorError(msg)
    used_classes = [model_class, "AutoConfig", *mapped_models] if model_class else []
    tokenizer_class = _auto_class(
        _AUTO_TOKENIZER if options.tokenizer == "auto" else options.tokenizer
    )
    used_classes += [tokenizer_class] if options.input != "one_hot_letters" else []
    ignored_class = next((key for key in used_classes if key in code_by_auto_class), None)
    if ignored_class is None or options.trust_remote_code:
        return
    file, reference = code_by_auto_class[ignored_class]
    msg = (
        f"{file} of {origin.name!r} has its own code for {ignored_class} ({reference}), but "
        "trust_remote_code is not given, expected true or false, as the library's class computes "
        "other embeddings: read that code and declare trust_remote_code=true, or declare "
        "trust_remote_code=false if the library's class is meant"
    )
    raise ExtractorError(msg)


def _check_unmapped_code(origin: Origin, options: Options) -> None:
    """Raise ExtractorError if a folder defines its model class, and config.json has no `auto_map`.

    An Auto class would then read only `model_type`, and load a class of the library.
    """
    path = origin.file("config.json")
    if not origin.is_local or path is None or not _auto_class(options.auto_class):
        return
    config = read_json(path.read_bytes())
    if not isinstance(config, dict) or config.get("auto_map"):
        return
    for name in _nested_texts(config.get("architectures")):
        defining_module = (
            None if hasattr(transformers, name) else _defining_module(Path(origin.name), name)
        )
        if defining_module is not None:
            msg = (
                f"config.json of {origin.name!r} names the class {name}, which "
                f"{defining_module.name} defines, but has no auto_map, so the library's "
                "class would be loaded: read that code and declare "
                f"auto_class=repository:{defining_module.stem}.{name} with "
                "trust_remote_code=true, or trust_remote_code=false if the library's "
                "class is meant"
            )
            raise ExtractorError(msg)


def _defining_module(folder: Path, class_name: str) -> Path | None:
    """Return the path of the module in a folder that defines a class; None if none does."""
    statement = re.compile(rb"^class " + re.escape(class_name).encode() + rb"\b", re.MULTILINE)
    for path in sorted(folder.glob("*.py")):
        try:
            if statement.search(read_regular(path, _CODE_BYTES_MAX)):
                return path
        except NotReadable:
            continue
    return None


_CODE_BYTES_MAX = 10_000_000
"""Largest module of a checkpoint, in bytes, that is searched for a class."""


def _auto_class(reference: str) -> str:
    """Return the name of the Auto class that an option refers to; "" for another class."""
    class_name = re.split("[:.]", reference)[-1]
    return (
        class_name
        if class_name.startswith("Auto") and not reference.startswith(("repository:", "own:"))
        else ""
    )


@contextlib.contextmanager
def loadable_origin(origin: Origin) -> Iterator[Origin]:
    """Yield an origin from whose folder transformers also loads the model's own code.

    For `OWNER/NAME--module.Class`, transformers would load from the Hub, even if the folder has the
    module. The yielded origin then has a temporary folder, whose files omit OWNER/NAME.
    """
    if not origin.is_local or not any(
        _REPOSITORY_SEPARATOR in reference for _, reference in _own_class_references(origin)
    ):
        yield origin
        return
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as linked_folder:
        for path in Path(origin.name).resolve().iterdir():
            Path(linked_folder, path.name).symlink_to(path)
        for file in {file for file, _ in _own_class_references(origin)}:
            document = read_json(Path(linked_folder, file).read_bytes())
            document["auto_map"] = _without_repository(document["auto_map"])
            Path(linked_folder, file).unlink()
            Path(linked_folder, file).write_text(json.dumps(document), encoding="utf-8")
        yield dataclasses.replace(origin, linked_folder=linked_folder)


def _own_class_references(origin: Origin) -> list[tuple[str, str]]:
    """Return (file, class) of each class of the checkpoint's own code in the file's `auto_map`."""
    return [(file, reference) for file, _, reference in _auto_map_entries(origin)]


def _auto_map_entries(origin: Origin) -> list[tuple[str, str, str]]:
    """Return (file, Auto class, own class) of each entry of the checkpoint's `auto_map`.

    In an old tokenizer_config.json, `auto_map` is a list of the two classes of the tokenizer.
    """
    all_entries = []
    for file in _MAPPING_FILES:
        path = origin.file(file)
        auto_map = {} if path is None else read_json(path.read_bytes()).get("auto_map")
        class_map = auto_map if isinstance(auto_map, dict) else {_AUTO_TOKENIZER: auto_map}
        all_entries += [
            (file, key, name) for key, value in class_map.items() for name in _nested_texts(value)
        ]
    return all_entries


def _without_repository(value: object) -> object:
    """Return an `auto_map` without the repositories in front of its classes."""
    if isinstance(value, str):
        return value.rpartition(_REPOSITORY_SEPARATOR)[2]
    if isinstance(value, dict):
        return {key: _without_repository(member) for key, member in value.items()}
    return [_without_repository(member) for member in value] if isinstance(value, list) else value


def check_class(option: str, value: str, auto_classes: tuple[str, ...]) -> None:
    """Raise ExtractorError unless `value` is in `auto_classes` or a name that `class_of` accepts.

    For a class of a package, only the presence of the package is checked.
    """
    if value in auto_classes:
        return
    form, colon, name = value.partition(":")
    if colon and form == "own":
        _check_own(option, name)
        return
    if colon and form == "package" and re.fullmatch(r"\w+(\.\w+)+", name):
        _check_package(option, name)
        return
    if colon and form == "repository" and re.fullmatch(r"\w+(\.\w+)+", name):
        return
    if colon and form == "transformers":
        if callable(getattr(getattr(transformers, name, None), "from_pretrained", None)):
            return
        class_names = [class_name for class_name in dir(transformers) if class_name[:1].isupper()]
        similar_names = difflib.get_close_matches(name, class_names, n=1)
        hint = f"; did you mean {similar_names[0]}?" if similar_names else ""
        msg = f"{option} is {value!r}, but transformers has no such class to load{hint}"
        raise ExtractorError(msg)
    similar_names = difflib.get_close_matches(value, auto_classes, n=1)
    suggestions = similar_names or auto_classes[:1]
    msg = (
        f"{option} is {value!r}, expected {', '.join(suggestions)}, transformers:CLASS, "
        "repository:FILE.CLASS, package:MODULE.CLASS or own:NAME"
    )
    raise ExtractorError(msg)


def _check_own(option: str, name: str) -> None:
    """Raise ExtractorError unless `name` is in `OWN_CLASSES`."""
    if name not in OWN_CLASSES:
        msg = f"{option} is 'own:{name}', expected own: and one of {', '.join(OWN_CLASSES)}"
        raise ExtractorError(msg)


def _check_package(option: str, name: str) -> None:
    """Raise ExtractorError unless the package of the class is installed."""
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        msg = (
            f"{option} is 'package:{name}', but no package {package} is installed here: install "
            "it, or run in the environment that the model's entry in the model registry pins"
        )
        raise ExtractorError(msg)


def class_of(reference: str, origin: Origin) -> Any:  # any class of that form
    """Return the class that the value of an option refers to; `check_class` has checked it."""
    form, colon, name = reference.partition(":")
    if colon and form == "own":
        return OWN_CLASSES[name]
    if colon and form == "package":
        module, _, class_name = name.rpartition(".")
        return _class_of_package(importlib.import_module(module), class_name)
    if colon and form == "repository":
        return get_class_from_dynamic_module(
            name, origin.loads_from, revision=origin.revision, local_files_only=origin.is_local
        )
    return getattr(transformers, name or form)


def _class_of_package(module: Any, name: str) -> Any:  # any class
    """Return the class of a module. Raise ExtractorError if the module does not have it."""
    try:
        return getattr(module, name)
    except AttributeError:
        msg = (
            f"package {module.__name__} has no class {name}: install the version that the model's "
            "entry in the model registry pins"
        )
        raise ExtractorError(msg) from None


def _nested_texts(value: object) -> Iterable[str]:
    """Yield every text in nested lists and objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _nested_texts(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _nested_texts(item)
