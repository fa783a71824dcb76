"""The command `geneb-ci new`, which writes the files of a model from its repository on the Hub."""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click

from geneb_ci.audit.rerun.weights import CONFIG_BYTES_MAX, HUB_PATTERNS, JSON_BYTES_MAX
from geneb_ci.check.rules.identity import refuse_bad_id
from geneb_ci.cli.shared import LayeredCommand, list_width
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import MachineFault, NothingChecked, UsageProblem
from geneb_ci.common.files import write_files
from geneb_ci.models.entry import parse_entry
from geneb_ci.models.registry import ENTRIES_FOLDER
from geneb_ci.models.scaffold import (
    CONFIG,
    TOKENIZER_CONFIG,
    TOKENIZER_FILES,
    WEIGHT_FILES,
    AuthorFacts,
    HubModel,
    Pooling,
    card_text,
    entry_text,
    extractor_words,
    json_object,
    module_text,
    name_or_none,
    property_test_text,
    run_words,
    weight_names,
)
from geneb_ci.render.table import wrapped_text
from reference_harness.formats.files import file_sha256
from reference_harness.formats.submission_terms import DTYPES, LINE_MAX, PARAMS_MAX
from reference_harness.formats.text import NEXT_PREFIX, command_lines, next_line, quoted

OTHER_FILES_MAX = 200
"""Maximum number of files beside the weights: a repository with more has several models."""
NO_MAXIMUM = "none"
"""Answer that the model reads inputs of any length."""
UNKNOWN_ANSWER = "unknown"
"""Answer of a user who does not know a fact."""


class Question(NamedTuple):
    """A fact that has to be asked, because the repository on the Hub does not state it."""

    name: str
    flag: str
    """Option that answers the question."""
    prompt: str
    type: Any
    """Type of the answer, for click."""
    default: Any = None


class LengthType(click.ParamType[int | str]):
    """A number of tokens, or `none`."""

    name = "N|none"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number, or `none`; fail with a usage error for anything else."""
        text = str(value)
        if text != NO_MAXIMUM and not (text.isascii() and text.isdecimal() and int(text) > 0):
            self.fail(
                f"{text!r} is not a number of tokens: pass a number such as 512, or none",
                param,
                ctx,
            )
        return text if text == NO_MAXIMUM else int(text)


class LineType(click.ParamType[str]):
    """One line of printable text."""

    name = "text"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the stripped text; fail with a usage error unless it is one printable line."""
        line = str(value).strip()
        if not line or len(line) > LINE_MAX or not line.isprintable():
            self.fail(f"expected one line of 1 to {LINE_MAX} characters", param, ctx)
        return line


_LINE_TYPE, _LENGTH_TYPE = LineType(), LengthType()
_DTYPE_TYPE = click.Choice(DTYPES, case_sensitive=False)
_POOLING_TYPE = click.Choice(get_args(Pooling), case_sensitive=False)
_COUNT_TYPE = click.IntRange(0, PARAMS_MAX)


@click.command(
    cls=LayeredCommand,
    common=(
        *("--revision", "--model-id", "--display", "--pooling", "--max-length", "--licence"),
        *("--training-data", "--submitted-by", "--trust-remote-code", "--force"),
    ),
)
@click.argument("repository", metavar="MODEL_ID")
@click.option("--revision", metavar="COMMIT", help="Commit to pin; default: the newest.")
@click.option("--model-id", help="Name of the files; default: the name of the repository.")
@click.option("--display", type=_LINE_TYPE, help="Name on the board; default: the repository's.")
@click.option("--pooling", type=_POOLING_TYPE, help="How hidden states become one vector.")
@click.option("--max-length", type=_LENGTH_TYPE, help="Number of tokens to which input is cut.")
@click.option("--dtype", type=_DTYPE_TYPE, help="Type of numbers; default: that of the weights.")
@click.option("--params", type=_COUNT_TYPE, help="Number of parameters.")
@click.option("--licence", type=_LINE_TYPE, help="Licence of the weights, or unknown.")
@click.option("--training-data", type=_LINE_TYPE, help="What the model was trained on.")
@click.option(
    "--zero-shot/--no-zero-shot",
    default=None,
    help="Whether the model saw no sequence of any task in training.",
)
@click.option(
    "--overlap", type=_LINE_TYPE, help="Known overlap of training and test data, or unknown."
)
@click.option("--submitted-by", type=_LINE_TYPE, help="Your name.")
@click.option(
    "--trust-remote-code/--no-trust-remote-code",
    default=None,
    help="Whether loading runs code of the repository; asked if the repository has code.",
)
@click.option(
    "--module",
    is_flag=True,
    help="Write an extractor to edit, instead of options of the built-in one.",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def new_command(
    repository: str, revision: str | None, module: bool, force: bool, **options: object
) -> None:
    """Write the first files of MODEL_ID, a model on the Hub such as OWNER/NAME.

    The files are the model card, an entry of the model registry, a test, and with --module an
    extractor. Facts come from the configuration and the list of files: no weights are downloaded,
    and no code of the repository is run. Facts that it does not state are asked; without a
    terminal, an error names all missing options.
    """
    if options["model_id"] is not None:
        refuse_bad_id(str(options["model_id"]))
    layout = find_layout(Path.cwd())
    folders = _folders(layout)
    model = hub_model(repository, revision)
    if model.has_decoder and not module:
        raise UsageProblem(
            f"{model.location} has an encoder and a decoder, and the general extractor runs no "
            "decoder",
            "pass --module: the module that it writes takes the states of the encoder",
        )
    author_facts = _author_facts(model, options)
    extractor = "builtin:huggingface"
    if module:
        extractors = folders["extractors"].relative_to(layout.root)
        extractor = f"{extractors.as_posix()}/{author_facts.module}.py:{author_facts.class_name}"
    entry_bytes = entry_text(model, author_facts, extractor).encode()
    content_by_path = {
        folders["cards"] / f"{author_facts.model_id}.md": card_text(model, author_facts).encode(),
        folders["policy"] / ENTRIES_FOLDER / f"{author_facts.model_id}.toml": entry_bytes,
        layout.root / f"test_{author_facts.module}.py": property_test_text(
            model, author_facts, extractor
        ).encode(),
    }
    parse_entry(entry_bytes, f"{author_facts.model_id}.toml")
    if module:
        content_by_path[folders["extractors"] / f"{author_facts.module}.py"] = module_text(
            model, author_facts
        ).encode()
    if not force and (existing_paths := [path for path in content_by_path if path.exists()]):
        listed = ", ".join(path.relative_to(layout.root).as_posix() for path in existing_paths)
        raise UsageProblem(
            f"these files exist already: {listed}",
            "pass --force to overwrite them, or another --model-id",
        )
    for path, content in content_by_path.items():
        write_files(path.parent, {path.name: content})
    click.echo(
        _report_text(model, author_facts, extractor, layout, list(content_by_path)), nl=False
    )


def _folders(layout: Layout) -> dict[str, Path]:
    """Return the folders of cards, extractors and policy.

    Raises UsageProblem outside of a board's repository.
    """
    folders = {"cards": layout.cards, "extractors": layout.extractors, "policy": layout.policy}
    if layout.submissions is None or layout.policy is None:
        raise UsageProblem(
            f"{layout.root} is not a repository of submissions",
            "change to a clone of the board's repository, or make one to practise: `geneb-ci init`",
        )
    base = layout.submissions
    return {name: path or base / name for name, path in folders.items()}


def hub_model(repository: str, revision: str | None) -> HubModel:
    """Return the facts of a repository of the Hub, without downloading its weights.

    Raises NothingChecked for a repository that does not exist or has no model of transformers, and
    MachineFault where the Hub cannot be reached.
    """
    from huggingface_hub import HfApi  # a second to import
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()  # a few small files
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=False)
    with _hub_errors(repository), tempfile.TemporaryDirectory(prefix="geneb-ci-new-") as folder:
        info = api.model_info(repository, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        digests = {file.rfilename: file.lfs.sha256 for file in info.siblings or () if file.lfs}
        if CONFIG not in sizes:
            raise NothingChecked(
                f"{repository} has no {CONFIG}, so the class that reads its weights is unknown",
                "write an extractor: docs/contributor/extractor.md has a template",
            )
        if not set(sizes).intersection(TOKENIZER_FILES):
            raise NothingChecked(
                f"{repository} has none of {', '.join(TOKENIZER_FILES)}, so transformers has no "
                "tokenizer for it",
                "write an extractor, or try `tokenizer=characters`: docs/contributor/extractor.md",
            )
        side_files = _other_needed_files(sizes)
        downloaded = Path(
            api.snapshot_download(
                repository, revision=info.sha, allow_patterns=side_files, local_dir=folder
            )
        )
        contents = {
            name: (downloaded / name).read_bytes() for name in _PARSED_FILES if name in side_files
        }
        files = {name: file_sha256(downloaded / name) for name in side_files}
    object_by_name = {name: json_object(raw, name) for name, raw in contents.items()}
    weights = weight_names(set(sizes), object_by_name)
    if undigested := [name for name in weights if name not in digests]:
        raise NothingChecked(
            f"the Hub states no SHA-256 of {', '.join(undigested)}",
            "ask the author to upload the weights again: the Hub then stores them by Git LFS or "
            "Xet, with a digest",
        )
    card, safetensors = info.card_data, info.safetensors
    return HubModel(
        location=_name_on_hub(info.id, repository),
        revision=info.sha or "",
        files=files | {name: digests[name] for name in weights},
        config=object_by_name[CONFIG],
        tokenizer=object_by_name.get(TOKENIZER_CONFIG, {}),
        licence=name_or_none(getattr(card, "license", None)),
        params=safetensors.total if safetensors is not None else None,
    )


def _name_on_hub(reply: object, requested: str) -> str:
    """Return the repository's name as the Hub writes it: requests may use other letter case."""
    is_name = isinstance(reply, str) and re.fullmatch(r"[\w.-]+(/[\w.-]+)?", reply, re.ASCII)
    return str(reply) if is_name else requested


_PARSED_FILES = (CONFIG, TOKENIZER_CONFIG, *(index_name for _, index_name in WEIGHT_FILES))
"""Files of a repository whose content is read."""


def _other_needed_files(sizes: Mapping[str, int]) -> list[str]:
    """Return the names of the files that a run needs beside the weights.

    Raises NothingChecked for too many files or bytes.
    """
    files = sorted(
        name
        for name in sizes
        if "/" not in name and any(Path(name).match(pattern) for pattern in HUB_PATTERNS)
    )
    total = sum(sizes[name] for name in files)
    if len(files) > OTHER_FILES_MAX or total > JSON_BYTES_MAX:
        raise NothingChecked(
            f"found {len(files)} files with {total:,} bytes beside the weights, expected at most "
            f"{OTHER_FILES_MAX} files with {JSON_BYTES_MAX:,} bytes",
            "name a repository with a single model",
        )
    for name in files:
        if name in _PARSED_FILES and sizes[name] > CONFIG_BYTES_MAX:
            raise NothingChecked(
                f"{name} has {sizes[name]:,} bytes, expected at most {CONFIG_BYTES_MAX:,}",
                "write the entry by hand: docs/maintainer/models.md explains each key",
            )
    return files


@contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    """Raise UsageProblem, NothingChecked or MachineFault for exceptions of the Hub's client."""
    from huggingface_hub.errors import (  # a second to import
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )
    from huggingface_hub.utils import httpx

    try:
        yield
    except HFValidationError as error:
        raise UsageProblem(
            f"{quoted(repository)} is not the name of a repository of the Hub",
            "write the name as OWNER/NAME",
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status in {401, 403, 404}:
            raise NothingChecked(
                f"the Hub has no public model {quoted(repository)}, or not this revision of it",
                "check the name and --revision; if the model is gated, write the files of the "
                "submission by hand",
            ) from error
        raise MachineFault(
            f"the Hub answered with status {status} for {repository}", "try again later"
        ) from error
    except (httpx.HTTPError, LocalEntryNotFoundError, OSError) as error:
        raise MachineFault(
            f"the Hub cannot be reached for {repository} ({type(error).__name__})",
            "check the network, and HF_ENDPOINT if it is set",
        ) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # The client does not validate answers: an unexpected one raises any exception.
        raise MachineFault(
            f"no usable answer from the Hub for {repository} ({type(error).__name__})",
            "try again later",
        ) from error


def _author_facts(model: HubModel, options: Mapping[str, object]) -> AuthorFacts:
    """Return the facts from options, and from answers of the user to questions.

    Raises UsageProblem that names all missing options where there is no terminal.
    """
    facts: dict[str, Any] = {
        "display": model.location.rpartition("/")[2],
        "max_length": model.max_length,
        "dtype": model.dtype,
        "params": model.params,
        "licence": model.licence,
        "trust_remote_code": None if model.has_code else False,
    }
    facts.update((name, value) for name, value in options.items() if value is not None)
    model_id = str(options["model_id"] or model.location.rpartition("/")[2])
    facts["model_id"] = model_id
    if not sys.stdin.isatty():
        missing_flags = [
            question.flag for question in QUESTIONS if facts.get(question.name) is None
        ]
        if missing_flags:
            raise UsageProblem(
                f"{model.location} does not state all facts of an entry, and without a terminal "
                "they cannot be asked",
                f"also pass {', '.join(missing_flags)}",
            )
    for question in QUESTIONS:
        if facts.get(question.name) is None:
            facts[question.name] = click.prompt(
                question.prompt, type=question.type, default=question.default, err=True
            )
    refuse_bad_id(model_id)
    if facts["max_length"] == NO_MAXIMUM:
        facts["max_length"] = None
    if facts["licence"] == UNKNOWN_ANSWER:
        facts["licence"] = None
    return AuthorFacts(**facts)


QUESTIONS = (
    Question("pooling", "--pooling", "Pooling of the last hidden states", _POOLING_TYPE, "mean"),
    Question("max_length", "--max-length", "Tokens at which input is cut, or none", _LENGTH_TYPE),
    Question("params", "--params", "Number of parameters", _COUNT_TYPE),
    Question("licence", "--licence", "Licence of the weights", _LINE_TYPE, UNKNOWN_ANSWER),
    Question("training_data", "--training-data", "What the model was trained on", _LINE_TYPE),
    Question(
        "zero_shot",
        "--zero-shot or --no-zero-shot",
        "Did the model see no sequence of any task in training",
        click.BOOL,
    ),
    Question(
        "overlap",
        "--overlap",
        "Known overlap of training and test data",
        _LINE_TYPE,
        UNKNOWN_ANSWER,
    ),
    Question("submitted_by", "--submitted-by", "Your name", _LINE_TYPE),
    Question(
        "trust_remote_code",
        "--trust-remote-code or --no-trust-remote-code",
        "The repository contains code. Run it when the model is loaded, also in audits",
        click.BOOL,
    ),
)
"""Questions in the order in which they are asked."""


COMMAND_WIDTH = 80
"""Columns at which the printed commands are wrapped."""


def _report_text(
    model: HubModel,
    author_facts: AuthorFacts,
    extractor: str,
    layout: Layout,
    written_paths: list[Path],
) -> str:
    """Return the report: facts of the model, written files, and the next steps."""
    input_length = (
        "any length"
        if author_facts.max_length is None
        else f"at most {author_facts.max_length:,} tokens"
    )
    width = "unknown width" if model.width is None else f"width {model.width:,}"
    built_in = extractor.removeprefix("builtin:")
    options = author_facts.extractor_options(model) if built_in != extractor else {}
    extractor_arguments = extractor_words(extractor, model.location, options)
    facts = {
        "model_id": author_facts.model_id,
        "display": author_facts.display,
        "params": str(author_facts.params),
        "zero_shot": "yes" if author_facts.zero_shot else "no",
        "training_data": author_facts.training_data,
        "submitted_by": author_facts.submitted_by,
    }
    run = run_words(extractor, model.location, options, facts)
    closing = (
        "The pull request has submission, card and extractor. The registry entry is for the "
        "maintainers, in a pull request of its own; the test stays with you."
    )
    description = f"{model.model_class}, {width}, {input_length}, {author_facts.dtype}"
    lines = [
        f"{model.location} at {model.revision}: {description}",
        *(f"  wrote {path.relative_to(layout.root).as_posix()}" for path in sorted(written_paths)),
        closing,
        "when the extractor is checked, run the evaluation:",
        *command_lines(f"  {shlex.join(run)}", COMMAND_WIDTH),
        *command_lines(
            next_line(shlex.join(["geneb-harness", "extractors", "check", *extractor_arguments])),
            COMMAND_WIDTH,
        ),
    ]
    columns = list_width("-")
    return "".join(
        f"{line}\n" if line.startswith((" ", NEXT_PREFIX)) else wrapped_text(line, columns)
        for line in lines
    )
