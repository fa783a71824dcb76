"""An entry of the model registry: how a model is loaded, and where its weights are.

docs/maintainer/models.md explains each key to maintainers.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.hosts import LOOPBACK, PUBLIC_ADDRESS
from reference_harness.formats.base import Hex40, Hex64, Name, Positive, StrictModel, all_errors
from reference_harness.formats.submission_terms import Dtype

PublicationKind = Literal["huggingface", "zenodo", "gdrive", "dataverse", "url", "none"]
"""Kind of place where weights are published; `none` for a method without weights."""
DEFAULT_HOSTS = {
    "zenodo": "https://zenodo.org",
    "gdrive": "https://drive.usercontent.google.com",
    "dataverse": "https://dataverse.harvard.edu",
}
"""Default server of each kind of place; Zenodo and Dataverse run on other servers, too."""
_FORBIDDEN_IN_ADDRESS = re.compile(r"[?#\s@]")
"""Characters that the address of weights must not have."""
Text = Annotated[str, Field(min_length=1, max_length=1000)]
"""A text of an entry."""
Host = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.:-]+$")]
"""Address of a server, without a path."""
FILE_NAME_PATTERN = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._/+-]*$")
"""Pattern of a path whose characters need no escapes in an address."""
FileName = Annotated[str, Field(pattern=FILE_NAME_PATTERN.pattern, max_length=200)]
"""Path of a file in a repository, an archive or a folder."""
FileId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=200)]
"""Id of a file on Google Drive, or its number on Dataverse."""


class PublishedRun(StrictModel):
    """Settings with which the published row was computed, even if they are wrong for the model."""

    pooling: Text
    hidden_layer: Text
    """Layer whose hidden states were pooled."""
    dtype: Text | None = None
    max_length: Positive | None = None
    """Number of tokens after which the run cut its input, including special tokens."""


class WeightsSource(StrictModel):
    """The files of a model, each pinned by its digest."""

    kind: PublicationKind
    location: str = ""
    """Repository of the Hub, record of Zenodo, folder of Drive, DOI of Dataverse, or the address of
    a folder with the files."""
    host: Host | None = None
    """Address of the server, if it is not the usual server of this kind."""
    revision: Hex40 | None = None
    """Commit of a repository of the Hub."""
    branch: Name | None = None
    """Branch of the repository, if it is not the main branch."""
    archive: FileName | None = None
    """Tar archive at the location that contains the files."""
    folder: FileName | None = None
    """Folder in the archive that contains the files."""
    files: dict[FileName, Hex64] = Field(default_factory=dict)
    """SHA-256 by file name, of weights, configuration, tokenizer and remote code."""
    ids: dict[FileName, FileId] = Field(default_factory=dict)
    """Id of the file on Drive, or its number on Dataverse, by file name."""

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        """Return this source. Raises ValueError if files cannot be fetched from it."""
        for fault in self._faults():
            raise ValueError(fault)
        return self

    def _faults(self) -> Iterator[str]:
        """Yield why files cannot be fetched from this source."""
        if self.kind == "none":
            if self.files or self.location:
                yield "kind 'none' is a method without weights, but files or a location are named"
            return
        kind, location, host = self.kind, self.location, self.host or DEFAULT_HOSTS["zenodo"]
        is_hub = kind == "huggingface"
        checks = (
            (not location, f"location is missing, which kind {kind!r} needs"),
            (
                is_hub and self.revision is None,
                f"revision is missing, which kind {kind!r} needs",
            ),
            (
                not is_hub and self.revision is not None,
                f"only kind 'huggingface' may have a revision; found kind {kind!r}",
            ),
            (
                self.host is not None and kind not in DEFAULT_HOSTS,
                f"only kinds {', '.join(DEFAULT_HOSTS)} may have a host; found kind {kind!r}",
            ),
            (not _is_server(host), f"host {host!r} is not an https address with a server's name"),
            (
                kind == "zenodo" and not location.isdecimal(),
                f"location {location!r} is not the number of a record, such as 7995778",
            ),
            (
                kind == "url"
                and (
                    _FORBIDDEN_IN_ADDRESS.search(location) is not None or not _is_server(location)
                ),
                f"location {location!r} is not an https address of a named server, without a query",
            ),
            (
                self.folder is not None and self.archive is None,
                "folder is a folder in an archive, but no archive is named",
            ),
            (
                bool(self.ids) and kind not in _DOWNLOAD_PATHS,
                f"only kinds {', '.join(_DOWNLOAD_PATHS)} may have ids; found kind {kind!r}",
            ),
            (
                any(".." in name.split("/") for name in self.files),
                "a file name leads out of the model's folder",
            ),
        )
        yield from (message for is_wrong, message in checks if is_wrong)
        for file in sorted(set(self.ids) - set(self.files)):
            yield f"ids has {file!r}, which is missing from files"


def _is_server(address: str) -> bool:
    """Whether an address is that of a public server or of this machine."""
    slash = f"{address.rstrip('/')}/"
    return address.startswith(LOOPBACK) or PUBLIC_ADDRESS.fullmatch(slash) is not None


class Code(StrictModel):
    """Repository of the authors' code, if the model needs more than its files."""

    repository: Text
    commit: Hex40 | None = None


class Environment(StrictModel):
    """Packages with which the model is run, if those of the harness cannot load it."""

    lock: FileName
    """File in leaderboard/policy/environments: requirements with hashes of packages that differ."""
    sha256: Hex64
    python: Annotated[str, Field(pattern=r"^3\.\d+$")] | None = None
    """Python version that the packages need; null for any."""


GENERAL_EXTRACTOR = "builtin:huggingface"
"""The general extractor of the harness."""
_TRUST_OPTION = "trust_remote_code"
"""Option of the general extractor: whether code of the checkpoint is run."""


class RunOptions(StrictModel):
    """Options with which the reference harness runs the model."""

    extractor: Name | None = None
    """`builtin:NAME`, or `PATH:CLASS` of a module in submissions/extractors."""
    options: dict[Name, str] = Field(default_factory=dict)
    """Keyword arguments of the extractor, as text."""
    dtype: Dtype = "float32"
    """Number format in which the model computes."""
    environment: Environment | None = None
    reverse_complement: bool = False
    """Whether a sequence and its reverse complement have the same embedding; an audit then also
    embeds other strands."""
    exercised: Text | None = None
    """The parts of this description that were tried, with what, and those that were not."""
    missing: Text | None = None
    """The missing code or facts without which the model cannot be run again."""

    @model_validator(mode="after")
    def _has_extractor_or_reason(self) -> Self:
        """Return these options. Raises ValueError if the extractor is missing or wrong."""
        if (self.extractor is None) == (self.missing is None):
            keys_text = "both keys" if self.missing else "neither key"
            raise ValueError(
                f"found {keys_text}, expected the key 'extractor' or the key 'missing'"
            )
        extractor = self.extractor or "builtin:x"
        if not re.fullmatch(r"builtin:\w+|\S+\.py:\w+", extractor):
            raise ValueError(f"extractor {extractor!r} is neither builtin:NAME nor PATH.py:CLASS")
        if self.options.get("dtype", self.dtype) != self.dtype:
            raise ValueError(
                f"[run] dtype is {self.dtype}, but [run.options] dtype is {self.options['dtype']}"
            )
        return self


class Loading(StrictModel):
    """Known facts about loading the model, for whoever writes an extractor."""

    class_: Annotated[Text, Field(alias="class")]
    output: Text
    """Member of the model's output with the hidden states."""
    tokenizer: Text
    """Kind of tokenizer, such as bpe or kmer."""
    remote_code: bool | None = None
    """Whether code of the repository is run; it sets the option of the general extractor."""
    gpu_only: bool = False
    """Whether the published code runs only on a GPU."""
    packages: list[Text] = Field(default_factory=list)
    """Packages beyond torch and transformers."""
    quirks: list[Name] = Field(default_factory=list)
    """Peculiarities, by the words of the table in docs/maintainer/models.md."""
    loaded_with: list[Name] = Field(default_factory=list)
    """Versions with which an independent reimplementation loaded these files and compared every
    key."""


class Paper(StrictModel):
    """A publication that describes the model."""

    title: Text
    address: Annotated[str, Field(pattern=r"^https://[A-Za-z0-9./_()-]+$", max_length=300)]
    """Address of the DOI or of the preprint's page."""


class Sources(StrictModel):
    """Texts that name the sources of an entry's facts."""

    facts: Text | None = None
    """The source of the facts outside of tables."""
    weights: Text | None = None
    """The source of the facts in `[weights]`."""
    licence: Text | None = None
    """The source of the licence; for an unknown licence, the sources that were searched."""
    params: Text | None = None
    """The reason why the published number of weights differs from the number in the files."""
    loading: list[Text] = Field(default_factory=list)
    """The sources of the facts in `[loading]`; OWNER/NAME:PATH is a file on GitHub."""


UNKNOWN_LICENCE = "unknown"
"""The licence if no source names one."""


class Candidate(StrictModel):
    """A possible description of the run that made the row, to be tried before an audit."""

    what: Text
    """The change in words."""
    options: dict[Name, str] = Field(default_factory=dict)
    """The changes to `[run.options]`; empty if an extractor must be written."""


class ModelEntry(StrictModel):
    """One file of the registry. Unknown facts are left out."""

    schema_version: Literal["1.0"]
    name: Name | None = None
    """Name in the paper."""
    params: Annotated[int, Field(ge=0)] | None = None
    """Number of parameters, as published."""
    params_in_paper: Positive | None = None
    """The paper's number of parameters, if it differs from `params`."""
    params_trained: Positive | None = None
    """Number of trained weights without tables of positions and filters, if it is not `params`."""
    params_unknown: Text | None = None
    """Remark on an unexplained difference of `params` from the number of weights in the files."""
    architecture: Name | None = None
    """The paper's word for the architecture."""
    tokenization: Name | None = None
    """The paper's word for the tokens."""
    tokenization_in_paper: Name | None = None
    """The paper's word, if the tokenizer makes other tokens."""
    pretraining: Name | None = None
    """The paper's word for the pretraining."""
    embedding_dim: Positive | None = None
    """Width of the embeddings."""
    licence: Name | None = None
    """Licence of the weights, as their publisher names it, or `unknown`."""
    max_tokens: Positive | None = None
    """Maximum number of tokens of an input, including special tokens."""
    max_letters: Positive | None = None
    """Maximum number of letters A, C, G, T of an input."""
    published: PublishedRun | None = None
    """Settings with which the published row was computed."""
    weights: WeightsSource | None = None
    code: Code | None = None
    papers: list[Paper] = Field(default_factory=list)
    run_unknown: Text | None = None
    """The reason why this description may not be that of the run that made the row. A rerun that
    differs is then not recorded, and the candidates are tried first."""
    candidates: list[Candidate] = Field(default_factory=list)
    """Other descriptions that may be that of the run."""
    run: RunOptions | None = None
    loading: Loading | None = None
    sources: Sources | None = None

    @model_validator(mode="after")
    def _has_consistent_keys(self) -> Self:
        """Return this entry. Raises ValueError for keys that contradict each other."""
        run, loading = self.run, self.loading
        option = run.options.get(_TRUST_OPTION) if run is not None else None
        remote_code = loading.remote_code if loading is not None else None
        if option is not None and remote_code is not None and option != str(remote_code).lower():
            raise ValueError(
                f"[loading] remote_code is {str(remote_code).lower()}, but [run.options] "
                f"{_TRUST_OPTION} is {option}"
            )
        if bool(self.run_unknown) != bool(self.candidates):
            key = "candidates" if self.candidates else "run_unknown"
            raise ValueError(f"found only {key}, expected run_unknown together with candidates")
        return self

    @property
    def options(self) -> dict[str, str]:
        """Keyword arguments of the extractor, as text.

        For the general extractor they include `remote_code`; without it, a checkpoint with code
        would be refused.
        """
        run, loading = self.run or RunOptions(missing="no run"), self.loading
        if run.extractor != GENERAL_EXTRACTOR or loading is None or loading.remote_code is None:
            return run.options
        return run.options | {_TRUST_OPTION: str(loading.remote_code).lower()}

    @property
    def missing_for_rerun(self) -> list[str]:
        """Reasons why a rerun is impossible, such as "no weights"; empty if it is possible."""
        reasons = []
        if self.weights is None:
            reasons.append("no weights")
        elif self.weights.kind != "none" and not self.weights.files:
            reasons.append("no file is pinned")
        if self.run is None:
            reasons.append("no extractor")
        elif self.run.missing is not None:
            reasons.append(self.run.missing)
        return reasons

    @property
    def attributes(self) -> dict[str, Any]:
        """Values of the known facts that rules and the board use, by name."""
        fact_by_name = {name: getattr(self, name) for name in _ATTRIBUTES}
        if self.published is not None:
            fact_by_name["pooling"] = self.published.pooling
        if self.loading is not None:
            fact_by_name["runs_on"] = "GPU" if self.loading.gpu_only else "CPU or GPU"
        return {name: value for name, value in fact_by_name.items() if value is not None}


_ATTRIBUTES = (
    *("name", "params", "params_in_paper", "params_trained", "architecture", "tokenization"),
    "pretraining",
    *("embedding_dim", "licence", "max_tokens", "max_letters"),
)
"""Keys of an entry whose values rules and the board use."""


class ReadEntry(NamedTuple):
    """An entry of the model registry, with the SHA-256 of its file."""

    entry: ModelEntry
    sha256: str


def parse_entry(raw: bytes, file: str) -> ReadEntry:
    """Return the entry in the bytes of a file; errors name the file `file`.

    Raises BadConfiguration if the bytes are not TOML or not an entry.
    """
    try:
        entry = ModelEntry.model_validate(tomllib.loads(raw.decode()))
    except ValidationError as error:
        raise BadConfiguration(f"{file}: {all_errors(error)}", _CORRECT_ENTRY) from error
    except RecursionError as error:
        raise BadConfiguration(f"{file}: the TOML is nested too deeply", _CORRECT_ENTRY) from error
    except ValueError as error:  # of the decoder, or tomllib's own
        raise BadConfiguration(
            f"{file}: the file is not valid TOML: {error}", _CORRECT_ENTRY
        ) from error
    return ReadEntry(entry, hashlib.sha256(raw).hexdigest())


_CORRECT_ENTRY = "correct the entry; docs/maintainer/models.md explains each key"


def addresses(weights: WeightsSource) -> dict[str, str]:
    """Return the https address of each file by its name; empty for files on the Hub.

    The address of a file in an archive is the archive's, `#` and the file's path in it. A file of
    Drive or Dataverse without an id has no address and is left out.
    """
    host = weights.host or DEFAULT_HOSTS.get(weights.kind, "")
    if weights.kind in {"huggingface", "none"}:
        return {}
    if weights.kind in {"gdrive", "dataverse"}:
        path = _DOWNLOAD_PATHS[weights.kind]
        return {name: host + path.format(file_id) for name, file_id in weights.ids.items()}
    base_address = weights.location.rstrip("/")
    if weights.kind == "zenodo":
        base_address, address_suffix = f"{host}/records/{weights.location}/files", "?download=1"
    else:
        address_suffix = ""
    if weights.archive is None:
        file_names = list(weights.files)
        if len(file_names) == 1 and base_address.endswith(f"/{file_names[0]}"):
            return {file_names[0]: base_address}  # the location is the file itself
        return {name: f"{base_address}/{name}{address_suffix}" for name in file_names}
    folder_prefix = f"{weights.folder}/" if weights.folder else ""
    return {
        name: f"{base_address}/{weights.archive}{address_suffix}#{folder_prefix}{name}"
        for name in weights.files
    }


_DOWNLOAD_PATHS = {
    # confirm=t skips the page that warns of files too large for a virus scan.
    "gdrive": "/download?id={}&export=download&confirm=t",
    "dataverse": "/api/access/datafile/{}",
}
"""Path of a file on the server by kind of publication, with {} for the file's id."""
