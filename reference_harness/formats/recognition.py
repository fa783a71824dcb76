"""Recognise files that are not what was expected: disguises and foreign formats.

This is the only list, used by all readers of both programs. A disguise is recognised from the bytes
of any file: a Git LFS pointer, merge conflict markers, an archive, a web page. A foreign format is
recognised from the value of valid JSON: a result of another benchmark, a file of another program.
Each has a name and advice.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

POINTER, CONFLICT, ENCODING, FOREIGN = (
    "lfs-pointer",
    "merge-conflict",
    "wrong-encoding",
    "foreign-format",
)
"""Kinds of recognised files; they are the ids of the rules that report them."""
LINES_MAX = 12
"""Maximum number of lines with conflict markers that a message lists."""


class Recognition(NamedTuple):
    """An unexpected file: its kind, its name with an article, and what to do."""

    kind: str
    """Id of the rule that reports such a file, such as "lfs-pointer"."""
    title: str
    """Kind of the file, with an article, such as "a Git LFS pointer"."""
    fix: str
    """Advice for the file."""
    lines: tuple[int, ...] = (1,)
    """Numbers, from 1, of the lines that show the format."""

    @property
    def predicate(self) -> str:
        """A predicate of the file, such as "is a Git LFS pointer"; for a conflict, with lines."""
        if self.kind != CONFLICT:
            return f"is {self.title}"
        line_numbers = ", ".join(map(str, self.lines[:LINES_MAX]))
        hidden_text = (
            f" and {len(self.lines) - LINES_MAX} more" if len(self.lines) > LINES_MAX else ""
        )
        return f"has {self.title} on line{'s' * (len(self.lines) > 1)} {line_numbers}{hidden_text}"


_UNPACK_FIX = "unpack it, and pass the file in it"
"""Advice for an archive or a compressed file."""
_SAVE_AS_TEXT_FIX = (
    'save it as UTF-8 without a byte order mark; in Python: open(path, "w", encoding="utf-8")'
)
"""Advice for text in another encoding, or with a byte order mark."""
_DOWNLOAD_FIX = "download the file itself: use the link to its bytes, not to a page about it"
"""Advice for a web page or a reply of a server."""
_LFS_FIX = (
    "get the file itself: `git lfs pull`. A submission is small enough for git: `git lfs untrack` "
    "its pattern, add the file again and commit it"
)
"""Advice for a pointer of Git LFS."""
_WEIGHTS_FIX = "pass the results of a run; weights are its input: `geneb-harness run --model`"
"""Advice for a file of weights."""
_FIRST_BYTES: tuple[tuple[bytes, str, str, str], ...] = (
    (b"version https://git-lfs.github.com/spec/", POINTER, "a Git LFS pointer", _LFS_FIX),
    (b"version https://hawser.github.com/spec/", POINTER, "a Git LFS pointer", _LFS_FIX),
    (b"# xet version ", POINTER, "a pointer of git-xet", "get the file itself: `git xet checkout`"),
    (b"\x1f\x8b", ENCODING, "gzip data", _UNPACK_FIX),
    (b"PK\x03\x04", ENCODING, "a zip archive", _UNPACK_FIX),
    (
        b"PK\x05\x06",
        ENCODING,
        "an empty zip archive",
        "pass the file that was to be packed, or pack it again",
    ),
    (b"BZh91AY&SY", ENCODING, "bzip2 data", _UNPACK_FIX),
    (b"\xfd7zXZ\x00", ENCODING, "xz data", _UNPACK_FIX),
    (b"\x28\xb5\x2f\xfd", ENCODING, "zstd data", _UNPACK_FIX),
    (b"7z\xbc\xaf\x27\x1c", ENCODING, "a 7-Zip archive", _UNPACK_FIX),
    (b"Rar!\x1a\x07", ENCODING, "a RAR archive", _UNPACK_FIX),
    (b"\xff\xfe\x00\x00", ENCODING, "UTF-16 or UTF-32 text", _SAVE_AS_TEXT_FIX),
    (b"\xff\xfe", ENCODING, "UTF-16 or UTF-32 text", _SAVE_AS_TEXT_FIX),
    (b"\xfe\xff", ENCODING, "UTF-16 text", _SAVE_AS_TEXT_FIX),
    (b"\x00\x00\xfe\xff", ENCODING, "UTF-32 text", _SAVE_AS_TEXT_FIX),
    (b"PAR1", ENCODING, "a Parquet file", "write its contents as text"),
    (b"\x89HDF\r\n", ENCODING, "an HDF5 file", "write its contents as text"),
    (b"SQLite format 3\x00", ENCODING, "an SQLite database", "write its contents as text"),
    (b"\x93NUMPY", ENCODING, "a NumPy array", "write its contents as text"),
    (b"%PDF-", ENCODING, "a PDF document", "write its contents as text"),
    (b"\x89PNG\r\n", ENCODING, "a PNG picture", "write what it shows as text"),
    (b"\xff\xd8\xff", ENCODING, "a JPEG picture", "write what it shows as text"),
    (b"GGUF", ENCODING, "a GGUF file, weights of a model", _WEIGHTS_FIX),
    (b"{\\rtf1", ENCODING, "a text document (RTF)", _SAVE_AS_TEXT_FIX),
)
"""Beginning of a file, kind, name and fix. The first match is used."""
_BINARY_PATTERNS: tuple[tuple[bytes, str, str], ...] = (
    (rb"(?s).{257}ustar", "a tar archive", _UNPACK_FIX),
    (rb"\x80[\x02-\x05][\x80-\xff(}\]X]", "a Python pickle", "write its contents as text"),
    # Eight bytes of length, then JSON.
    (rb'(?s).{4}\0{4}\{\s*"', "a safetensors file, weights of a model", _WEIGHTS_FIX),
    (rb"(?s)..\r\n[\0-\3]\0\0\0", "compiled Python", "pass its source, the .py file"),
    # Two characters of UTF-16 or one of UTF-32 without a byte order mark; text begins with ASCII.
    (
        rb"(?s)[^\0]\0([^\0]\0|\0\0|\Z)|\0[^\0](\0[^\0]|\Z)|\0\0\0[^\0]",
        "UTF-16 or UTF-32 text",
        _SAVE_AS_TEXT_FIX,
    ),
    (rb"(?s).{0,3}\0", "binary data, not text", _SAVE_AS_TEXT_FIX),
)
"""Pattern of the beginning of bytes that are no text, name and fix. The first match is used."""
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""
TEXT_WITH_BOM = Recognition(ENCODING, "text with a byte order mark", _SAVE_AS_TEXT_FIX)
"""Text that begins with a byte order mark where none is allowed."""
_HEAD_BYTES = 2_000
"""Number of bytes at the beginning of a text that are searched."""
_FOREIGN_TEXT_PATTERNS: tuple[tuple[bytes, str, str, str], ...] = (
    (rb"(?i)<(!doctype\s+html|html[\s>]|head[\s>])", FOREIGN, "an HTML page", _DOWNLOAD_FIX),
    (rb"(?is)<\?xml\b.{0,200}<svg", FOREIGN, "an SVG picture", _DOWNLOAD_FIX),
    (
        rb"(?s)<\?xml\b.{0,200}<Error>",
        FOREIGN,
        "an error message of a storage service",
        _DOWNLOAD_FIX,
    ),
    (
        rb"(404: Not Found|Not Found|Entry not found|Repository not found|Forbidden)\s*\Z",
        FOREIGN,
        "the answer of a web server that has no such file",
        _DOWNLOAD_FIX,
    ),
    (
        rb"(diff --git |From [0-9a-f]{40} |Index: \S+\n=+\n|--- \S+.*\n\+\+\+ \S)",
        FOREIGN,
        "a patch",
        "apply it in a clone, `git apply FILE`, and pass the file that it changes",
    ),
    (
        rb"(\.\./)*(\.git/annex|annex)/objects/\S+\s*\Z|/annex/objects/\S+\s*\Z",
        POINTER,
        "a pointer of git-annex",
        "get the file itself: `git annex get FILE`",
    ),
    (
        rb"(\.\.?/)?[\w.@+-]+(/[\w.@+-]+)*\.(json|md|py|toml|txt)\Z",
        FOREIGN,
        "the text of a symbolic link, as git writes it where links are not enabled",
        "put the file itself there, or run `git config core.symlinks true && git checkout FILE`",
    ),
    (
        rb"outs:\r?\n- md5:",
        POINTER,
        "a pointer of DVC",
        "get the file itself: `dvc pull FILE`",
    ),
)
"""Pattern of the beginning of foreign text without leading blanks; kind, name and fix. No pattern
matches JSON. They are compiled when needed, as most files are valid and begin with a brace."""
_NON_JSON_PATTERNS: tuple[tuple[bytes, str, str, str], ...] = (
    (
        rb"(`{3}|~{3})",
        FOREIGN,
        "a code block of Markdown",
        "delete the lines with ``` before and after its text",
    ),
    (
        rb"(---\s*\r?\n)?- *(dataset|task):\s*\r?\n\s+(id|type):",
        FOREIGN,
        "a file of Hugging Face's `.eval_results`, which has single scores of a model",
        "collect the logs of the run instead: `geneb-ci pack FOLDER`",
    ),
    (
        # The lookahead rejects other lines at once: JSON on one line has many braces to try.
        rb"(?=[^\n]*\}\r?\n\{)\{[^{}\n]*(\{[^\n]*\})?[^{}\n]*\}\r?\n\{",
        FOREIGN,
        "JSON Lines, a value on each line",
        "pass a file with one JSON object; lines are records of single samples as a rule",
    ),
    (
        rb"(#!.*python|from [\w.]+ import |import \w|class \w+[(:]|def \w+\(|@\w|\"{3}|'{3})",
        FOREIGN,
        "a module of Python",
        "pass a submission; to try an extractor, run `geneb-harness extractors check FILE:CLASS`",
    ),
    (
        # A header and a line of values, with the same separator.
        rb"[\w .\"/-]+([,;\t])[\w .\"/-]+(\1[\w .\"/-]*)*\r?\n[^\n{}]*\1",
        FOREIGN,
        "a table of values (CSV)",
        "collect the logs of the run instead: `geneb-ci pack FOLDER`",
    ),
    (
        rb"(---\s*\r?\n)?[A-Za-z_]\w*:([ \t]|\r?\n)",
        FOREIGN,
        "YAML",
        "write it as JSON, as a run does: `geneb-harness run --submission FILE`",
    ),
)
"""Further beginnings, foreign only where JSON is expected: a card may begin with a code block."""
_NOTEBOOK_PATTERN = rb'"nbformat"\s*:\s*\d'
"""The member of a Jupyter notebook that no other JSON has."""
_CONFLICT_START_OR_END = rb"(?m)^[ \t]*(?:<{7}|>{7})(?=[ \t\r\n]|\Z)"
"""The first or the last line of a merge conflict."""
_CONFLICT_MARKER = rb"(?m)^[ \t]*(?:<{7}|>{7}|={7}|\|{7})(?=[ \t\r\n]|\Z)"
"""Any line that git inserts at a merge conflict."""
_CONFLICT_FIX = (
    "resolve the conflict: at each of these places keep one side, delete the lines with <<<<<<<, "
    "======= and >>>>>>>, then `git add FILE` and commit"
)
"""Advice for a merge conflict."""


def disguise_of(raw: bytes, *, markup: bool = False) -> Recognition | None:
    """Return what these bytes are recognised as, such as a web page; None if unrecognised.

    A byte order mark alone does not count, as some readers accept it. `markup` is for Markdown and
    code, in which lines of equals signs and code blocks are usual.
    """
    for magic, kind, title, fix in _FIRST_BYTES:
        if raw.startswith(magic):
            return Recognition(kind, title, fix)
    if b"\0" in raw[:_HEAD_BYTES] or raw[:1] == b"\x80":
        binary = next(
            (signature for signature in _BINARY_PATTERNS if re.match(signature[0], raw)), None
        )
        if binary is not None:
            return Recognition(ENCODING, binary[1], binary[2])
    return _disguised_text(raw.removeprefix(BOM), markup=markup)


def _disguised_text(content: bytes, *, markup: bool) -> Recognition | None:
    """Return what a text is recognised as, as `disguise_of` does for bytes."""
    head = content[:_HEAD_BYTES].lstrip()
    is_json = head[:1] in {b"{", b"["}
    lines = conflict_lines(content, any_marker=is_json and not markup)
    if lines:
        return Recognition(CONFLICT, "merge conflict markers", _CONFLICT_FIX, lines)
    if is_json and b'"nbformat"' in content and re.search(_NOTEBOOK_PATTERN, content):
        fix = "pass what its cells wrote; for code: `jupyter nbconvert --to script FILE`"
        return Recognition(FOREIGN, "a Jupyter notebook", fix)
    beginning = head if len(content) <= _HEAD_BYTES else content[:_HEAD_BYTES].lstrip() + b"\n..."
    beginnings = (
        *(() if is_json else _FOREIGN_TEXT_PATTERNS),
        *(() if markup else _NON_JSON_PATTERNS),
    )
    for pattern, kind, title, fix in beginnings:
        if re.match(pattern, beginning):
            return Recognition(kind, title, fix)
    return None


def conflict_lines(content: bytes, *, any_marker: bool = False) -> tuple[int, ...]:
    """Return the numbers, from 1, of the lines with markers of a merge conflict.

    Lines of seven equals signs or bars count only together with another marker, or with
    `any_marker`: they occur in Markdown, under headings and in tables, but not in JSON.
    """
    signs = (b"<<<<<<<", b">>>>>>>", *((b"=======", b"|||||||") if any_marker else ()))
    if not any(sign in content for sign in signs) or not (
        any_marker or re.search(_CONFLICT_START_OR_END, content)
    ):
        return ()
    lines, last_start, line_number = [], 0, 1
    for match in re.finditer(_CONFLICT_MARKER, content):
        line_number += content.count(b"\n", last_start, match.start())
        last_start = match.start()
        lines.append(line_number)
    return tuple(lines)


class ForeignFormat(NamedTuple):
    """A format of another program: its title, a test of the value, and what to do."""

    title: str
    """Kind of a file of the format, with an article."""
    is_format: Callable[[Mapping[str, Any]], bool]
    """Whether a JSON object has the format."""
    fix: str
    """Advice for such a file."""


def _has_members(*members: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that tells whether a JSON object has all these members."""
    return lambda value: all(name in value for name in members)


LOG_METRICS = {"mcc": "MCC", "accuracy": "Acc", "f1_score": "F1"}
"""Names of metrics in upstream's logs of one task, and in a submission."""


def is_log(value: object) -> bool:
    """Whether a value is an upstream log of one task: three metrics with their means."""
    return isinstance(value, dict) and all(
        isinstance(value.get(name), dict) and "mean" in value[name] for name in LOG_METRICS
    )


def is_mteb_result(value: object) -> bool:
    """Whether a value is a result of one task by MTEB 1.11 or later."""
    return isinstance(value, dict) and "task_name" in value and "scores" in value


def _is_every_eval_ever_result(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a result in the format "Every Eval Ever"."""
    return "evaluation_results" in value and ("evaluation_id" in value or "model_info" in value)


def _is_every_eval_ever_sample(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is one sample in the format "Every Eval Ever"."""
    return "evaluation_id" in value and "sample_id" in value


def _is_mteb_model_card(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is MTEB's description of a model."""
    return "n_parameters" in value and ("loader" in value or "framework" in value)


def _is_error_response(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is the error of a server instead of the file."""
    return value.keys() <= {"error", "errors", "message", "status", "documentation_url"} and (
        isinstance(value.get("error"), str) or "documentation_url" in value
    )


def _is_lm_eval_result(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a result of the LM Evaluation Harness."""
    if "results" not in value or "schema_version" in value:
        return False
    return "versions" in value or "n-shot" in value or {"configs", "group_subtasks"} <= value.keys()


_PACK_FIX = "collect all results of the model: `geneb-ci pack FOLDER`"
"""Advice for the results of single tasks."""
_OTHER_PROTOCOL_FIX = (
    "its numbers are of another protocol: run the benchmark, `geneb-harness run --submission FILE`"
)
"""Advice for results of another protocol."""
_MODEL_FIX = "pass the results of a run; `geneb-ci new OWNER/MODEL` describes a model"
"""Advice for a file of a model."""
FOREIGN_FORMATS: tuple[ForeignFormat, ...] = (
    ForeignFormat(
        "a log of upstream's pipeline of one task",
        is_log,
        "collect all logs of the model into a submission: `geneb-ci pack DIR --model-id ID "
        "--display NAME --params COUNT`",
    ),
    ForeignFormat(
        "a record of Every Eval Ever, which has single scores of a model",
        _is_every_eval_ever_result,
        "collect the logs that it was made from: `geneb-ci pack FOLDER`; the board writes such "
        "records, `geneb-ci export --format every-eval-ever`, and takes none",
    ),
    ForeignFormat(
        "a sample of an Every Eval Ever record",
        _is_every_eval_ever_sample,
        "collect the logs of the run instead: `geneb-ci pack FOLDER`",
    ),
    ForeignFormat("a result of MTEB of one task", is_mteb_result, _PACK_FIX),
    ForeignFormat(
        "a result of MTEB before version 1.11", _has_members("mteb_dataset_name"), _PACK_FIX
    ),
    ForeignFormat(
        "all results of a model in one file of MTEB",
        _has_members("model_name", "task_results"),
        "write a file for each task, as MTEB does in results/MODEL/REVISION, then "
        "`geneb-ci pack FOLDER`",
    ),
    ForeignFormat(
        "the model_meta.json of MTEB, which describes a model",
        _is_mteb_model_card,
        "pass the folder with its results: `geneb-ci pack FOLDER`",
    ),
    ForeignFormat(
        "a result of lighteval, which prompts a model and fits no probe on embeddings",
        _has_members("config_general", "results"),
        _OTHER_PROTOCOL_FIX,
    ),
    ForeignFormat(
        "a result of the LM Evaluation Harness, which prompts a model and fits no probe on "
        "embeddings",
        _is_lm_eval_result,
        _OTHER_PROTOCOL_FIX,
    ),
    ForeignFormat(
        "a sample of the LM Evaluation Harness",
        _has_members("doc_id", "resps"),
        _OTHER_PROTOCOL_FIX,
    ),
    ForeignFormat(
        "a log of Inspect, which prompts a model and fits no probe on embeddings",
        _has_members("eval", "plan", "status"),
        _OTHER_PROTOCOL_FIX,
    ),
    ForeignFormat(
        "a run of HELM, which prompts a model and fits no probe on embeddings",
        _has_members("adapter_spec", "scenario_spec"),
        _OTHER_PROTOCOL_FIX,
    ),
    ForeignFormat(
        "an entry of Hugging Face's evaluation results, which has single scores of a model",
        lambda value: "model-index" in value or ("dataset" in value and "value" in value),
        "collect the logs of the run instead: `geneb-ci pack FOLDER`",
    ),
    ForeignFormat(
        "the config.json of a model",
        lambda value: (
            "model_type" in value and ("architectures" in value or "hidden_size" in value)
        ),
        _MODEL_FIX,
    ),
    ForeignFormat("a tokenizer of a model", _has_members("added_tokens", "model"), _MODEL_FIX),
    ForeignFormat(
        "statistics of HELM, which prompts a model and fits no probe on embeddings",
        lambda value: isinstance(value.get("name"), dict) and "sum" in value and "count" in value,
        _OTHER_PROTOCOL_FIX,
    ),
    ForeignFormat(
        "a report of scikit-learn's classification_report",
        _has_members("macro avg"),
        "collect the logs of the run instead: `geneb-ci pack FOLDER`",
    ),
    ForeignFormat(
        "the state of a trainer, which has metrics of training",
        lambda value: "log_history" in value or ("_runtime" in value and "_step" in value),
        _OTHER_PROTOCOL_FIX,
    ),
    ForeignFormat(
        "a report of findings",
        lambda value: "findings" in value or ("runs" in value and "version" in value),
        "pass the submission that it is about",
    ),
    ForeignFormat("the index of a model's weights", _has_members("weight_map"), _MODEL_FIX),
    ForeignFormat(
        "an answer of a web server, which has an error", _is_error_response, _DOWNLOAD_FIX
    ),
    ForeignFormat(
        "an answer of GitHub's API, which holds a file in base64",
        _has_members("encoding", "content", "sha"),
        "ask for the file itself: the header `Accept: application/vnd.github.raw+json`",
    ),
    ForeignFormat(
        "a definition of a benchmark",
        _has_members("tasks", "regimes", "metrics", "protocol"),
        "pass a submission, such as submissions/MODEL.json",
    ),
    ForeignFormat(
        "a JSON schema",
        lambda value: "$schema" in value and ("properties" in value or "$defs" in value),
        "pass a file that it describes, such as submissions/MODEL.json",
    ),
)
"""The formats of other programs that are recognised; the first that matches is used."""


def foreign_format_of(value: object) -> Recognition | None:
    """Return the format of another program that a JSON value has; None if it has no known one.

    An array is recognised by its first object.
    """
    document = value[0] if isinstance(value, list) and value else value
    if not isinstance(document, dict) or ("model_id" in document and "results" in document):
        return None
    match = next(
        (candidate for candidate in FOREIGN_FORMATS if candidate.is_format(document)), None
    )
    return None if match is None else Recognition(FOREIGN, match.title, match.fix)
