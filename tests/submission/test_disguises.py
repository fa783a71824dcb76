"""What is no file of ours is named for what it is, whichever file it was to be."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.cli.main import main
from reference_harness.extractors.base import ExtractorError
from reference_harness.formats.recognition import conflict_lines, disguise_of, foreign_format_of
from reference_harness.loading.loader import load
from tests.rules.deltas import SOUND, Files
from tests.rules.place import built
from tests.small import CARD, small, small_v11

ROW, CARD_PATH, MODULE = (
    "submissions/model.json",
    "submissions/cards/model.md",
    "submissions/extractors/model.py",
)
TEXT = json.dumps(small("model"), indent=1)
CODE = b'"""An extractor."""\n\nclass Model: ...\n'


def archive(kind: str) -> bytes:
    """Return an archive with a submission in it."""
    stream, raw = io.BytesIO(), TEXT.encode()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as packed:
            packed.writestr("model.json", raw)
    else:
        with tarfile.open(fileobj=stream, mode="w") as packed:
            packed.addfile(tarfile.TarInfo("model.json"), io.BytesIO())
    return stream.getvalue()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 9\n" % (b"a" * 64)
PAGE = b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"
NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
PATCH = b"diff --git a/x.json b/x.json\n--- a/x.json\n+++ b/x.json\n@@ -1 +1 @@\n-1\n+2\n"

# name: bytes, rule, words of the message, words of the fix.
EVERYWHERE: dict[str, tuple[bytes, str, str, str]] = {
    "lfs": (POINTER, "lfs-pointer", "is a Git LFS pointer", "git lfs pull"),
    "lfs, Windows": (
        POINTER.replace(b"\n", b"\r\n"),
        "lfs-pointer",
        "is a Git LFS pointer",
        "git lfs untrack",
    ),
    "annex": (
        b"/annex/objects/SHA256E-s9--abc.json\n",
        "lfs-pointer",
        "is a pointer of git-annex",
        "git annex get",
    ),
    "dvc": (b"outs:\n- md5: abc\n  path: x\n", "lfs-pointer", "is a pointer of DVC", "dvc pull"),
    "gzip": (gzip.compress(b"x" * 99), "wrong-encoding", "is gzip data", "Unpack it"),
    "bzip2": (bz2.compress(b"x" * 99), "wrong-encoding", "is bzip2 data", "Unpack it"),
    "xz": (lzma.compress(b"x" * 99), "wrong-encoding", "is xz data", "Unpack it"),
    "zip": (archive("zip"), "wrong-encoding", "is a zip archive", "Unpack it"),
    "tar": (archive("tar"), "wrong-encoding", "is a tar archive", "Unpack it"),
    "pickle": (pickle.dumps({"a": 1}), "wrong-encoding", "is a Python pickle", "as text"),
    "UTF-16, Notepad": (
        TEXT.encode("utf-16"),
        "wrong-encoding",
        "is UTF-16 or UTF-32 text",
        "Save it as UTF-8",
    ),
    "UTF-16, no mark": (TEXT.encode("utf-16-le"), "wrong-encoding", "is UTF-16", "Save it as"),
    "UTF-32": (TEXT.encode("utf-32-be"), "wrong-encoding", "is UTF-16 or UTF-32 text", "UTF-8"),
    "page": (PAGE, "foreign-format", "is an HTML page", "not to a page about it"),
    "page, blanks": (b"\n\n  <html lang=en>", "foreign-format", "is an HTML page", "the link"),
    "404": (b"404: Not Found", "foreign-format", "answer of a web server", "Download the file"),
    "the Hub's 404": (b"Entry not found\n", "foreign-format", "answer of a web server", "Download"),
    "storage": (
        b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
        "foreign-format",
        "is an error message of a storage service",
        "Download the file",
    ),
    "notebook": (NOTEBOOK, "foreign-format", "is a Jupyter notebook", "jupyter nbconvert"),
    "patch": (PATCH, "foreign-format", "is a patch", "git apply"),
    "link": (b"../rows/model.json", "foreign-format", "text of a symbolic link", "core.symlinks"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0", "wrong-encoding", "is a PNG picture", "as text"),
    "weights": (
        b"\x1e\0\0\0\0\0\0\0" + b'{"a":{"dtype":"F32"}}  \0\0\0\0',
        "wrong-encoding",
        "is a safetensors file, weights of a model",
        "--model",
    ),
    "gguf": (b"GGUF\3\0\0\0", "wrong-encoding", "is a GGUF file", "results of a run"),
    "pyc": (b"\xa7\r\r\n\0\0\0\0\xe3", "wrong-encoding", "is compiled Python", "its source"),
    "rtf": (b"{\\rtf1\\ansi hello}", "wrong-encoding", "is a text document (RTF)", "UTF-8"),
    "parquet": (b"PAR1\x15\x04", "wrong-encoding", "is a Parquet file", "as text"),
}


def whole() -> Files:
    """Return a row of format 1.1 that names an extractor, with it and a card."""
    document = small_v11("model")
    document["run"]["extractor"]["path"] = MODULE
    document["run"]["extractor"]["sha256"] = hashlib.sha256(CODE).hexdigest()
    return {ROW: json.dumps(document).encode(), CARD_PATH: CARD.encode(), MODULE: CODE}


def findings(files: Files, root: Path, monkeypatch: Any, capsys: Any) -> tuple[int, list[Any]]:
    """Return exit code and errors of a check in a repository with these files."""
    built(files, root)
    monkeypatch.chdir(root)
    code = main(["check", ROW, "--format", "json", "--no-cache"])
    report = json.loads(capsys.readouterr().out)
    return code, [f for f in report["findings"] if f["severity"] == "error"]


@pytest.mark.parametrize("path", [ROW, CARD_PATH, MODULE])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_disguise_is_named_in_a_row_a_card_and_an_extractor(
    name, path, tmp_path, monkeypatch, capsys
):
    raw, rule, words, fix = EVERYWHERE[name]
    code, errors = findings(whole() | {path: raw}, tmp_path, monkeypatch, capsys)
    assert code == 11
    (error,) = errors
    assert (error["rule"], error["file"], error["line"]) == (rule, path, 1)
    assert words in error["message"]
    assert fix in error["fix"]


ADDED = {
    "diff3": ("<<<<<<< HEAD\n{a}||||||| base\n=======\n{b}>>>>>>> main\n", 5),
    "Windows": ("<<<<<<< HEAD\r\n{a}=======\r\n{b}>>>>>>> main\r\n", 3),
    "indented": (" <<<<<<< HEAD\n{a}=======\n{b}>>>>>>> main\n", 3),
    "stash": ("<<<<<<< Updated upstream\n{a}=======\n{b}>>>>>>> Stashed changes\n", 3),
    "only the end is left": ("{a}>>>>>>> main\n", 1),
    "only the start is left": ("<<<<<<< HEAD\n{a}", 1),
}
SIDES = {
    ROW: ' "model_id": "model",\n',
    CARD_PATH: "- **Pooling:** mean\n",
    MODULE: "import os\n",
}


@pytest.mark.parametrize("file_path", ["first", "middle", "last"])
@pytest.mark.parametrize("path", SIDES)
@pytest.mark.parametrize("name", ADDED)
def test_markers_of_a_conflict_are_named_with_their_lines(
    name, path, file_path, tmp_path, monkeypatch, capsys
):
    text, side = whole()[path].decode(), SIDES[path]
    added = ADDED[name][0].format(a=side, b=side)
    lines = [TEXT if path == ROW else text][0].split("\n")
    at = {"first": 0, "middle": len(lines) // 2, "last": len(lines)}[file_path]
    content = "\n".join([*lines[:at], added, *lines[at:]])
    code, errors = findings(whole() | {path: content.encode()}, tmp_path, monkeypatch, capsys)
    assert code == 11
    (error,) = errors
    assert (error["rule"], error["file"]) == ("merge-conflict", path)
    start = next(n for n, line in enumerate(content.split("\n"), 1) if line.strip()[:7] in MARKS)
    assert error["line"] == start
    assert (
        f"has merge conflict markers on line{'s' * (added.count(side) > 1)} {start}"
        in (error["message"])
    )
    assert "git add" in error["fix"]


MARKS = {"<<<<<<<", ">>>>>>>"}


@pytest.mark.parametrize(
    ("text", "alone", "lines"),
    [
        ("a\n<<<<<<< x\nb\n=======\nc\n>>>>>>> y\n", False, (2, 4, 6)),
        ("Title\n=======\n", False, ()),
        ("{\n=======\n}", True, (2,)),
        ("|||||||\n", False, ()),
        ("a <<<<<<< b\n", False, ()),
        ("<<<<<<<<\n", False, ()),
        ("<<<<<<<x\n", False, ()),
        ("<<<<<<<", False, (1,)),
        ("x" * 500 + "\n" * 300 + "<<<<<<< \n" * 2, False, (301, 302)),
    ],
)
def test_the_lines_of_a_conflict(text, alone, lines):
    assert conflict_lines(text.encode(), any_marker=alone) == lines


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        (CARD_PATH, b"Model\n=======\n\n" + CARD.encode()),
        (CARD_PATH, b"```\ncode\n```\n" + CARD.encode()),
        (CARD_PATH, b"\xef\xbb\xbf" + CARD.encode()),
        (CARD_PATH, CARD.encode().replace(b"\n", b"\r\n")),
        (CARD_PATH, CARD.encode().replace(b"\n", b"\r")),
        (MODULE, CODE + b'"""\nTitle\n=======\n"""\n'),
    ],
    ids=["underlined heading", "code block", "byte order mark", "CRLF", "CR", "docstring"],
)
def test_what_only_looks_like_a_disguise_passes(path, raw, tmp_path, monkeypatch, capsys):
    files = whole() | {path: raw}
    if path == MODULE:
        document = json.loads(files[ROW])
        document["run"]["extractor"]["sha256"] = hashlib.sha256(raw).hexdigest()
        files[ROW] = json.dumps(document).encode()
    code, errors = findings(files, tmp_path, monkeypatch, capsys)
    assert (code, errors) == (0, [])


def test_sound_files_are_not_recognised_as_anything():
    for path, raw in (SOUND | whole()).items():
        assert disguise_of(raw, markup=not path.endswith(".json")) is None
    for document in (small("a"), small_v11("a")):
        assert foreign_format_of(document) is None


MTEB = {"task_name": "x", "dataset_revision": "0" * 40, "scores": {"test": []}}
# name: value, words of the message, words of the fix.
FORMATS: dict[str, tuple[object, str, str]] = {
    "EEE 0.3": (
        {"schema_version": "0.3.0", "evaluation_id": "a", "evaluation_results": []},
        "this is a record of Every Eval Ever",
        "geneb-ci pack",
    ),
    "EEE without id": (
        {"schema_version": "0.2.2", "model_info": {}, "evaluation_results": [{"score": 1}]},
        "this is a record of Every Eval Ever",
        "geneb-ci pack",
    ),
    "EEE sample": (
        {"schema_version": "instance_level_eval_0.2.0", "evaluation_id": "a", "sample_id": "1"},
        "a sample of an Every Eval Ever record",
        "geneb-ci pack",
    ),
    "lm-eval": (
        {"results": {}, "configs": {}, "versions": {}, "n-shot": {}},
        "this is a result of the LM Evaluation Harness",
        "geneb-harness run",
    ),
    "old lm-eval": (
        {"results": {}, "versions": {}, "config": {}},
        "this is a result of the LM Evaluation Harness",
        "geneb-harness run",
    ),
    "lighteval": ({"config_general": {}, "results": {}, "versions": {}}, "lighteval", "run"),
    "inspect": ({"version": 2, "status": "success", "eval": {}, "plan": {}}, "Inspect", "run"),
    "HELM": ({"name": "x", "adapter_spec": {}, "scenario_spec": {}}, "HELM", "run"),
    "MTEB 2": (MTEB | {"mteb_version": "2.1.0"}, "a result of MTEB of one task", "geneb-ci pack"),
    "MTEB 1.0": (
        {"mteb_dataset_name": "x", "mteb_version": "1.0.2", "test": {"accuracy": 0.5}},
        "a result of MTEB before version 1.11",
        "geneb-ci pack",
    ),
    "MTEB, whole model": (
        {"model_name": "m", "model_revision": "r", "task_results": [MTEB]},
        "all results of a model in one file of MTEB",
        "geneb-ci pack",
    ),
    "model_meta": (
        {"name": "org/m", "revision": "r", "n_parameters": 5, "framework": ["PyTorch"]},
        "the model_meta.json of MTEB",
        "geneb-ci pack",
    ),
    "eval results": (
        [{"dataset": {"id": "org/d", "task_id": "t"}, "value": 1}],
        "Hugging Face's evaluation results",
        "geneb-ci pack",
    ),
    "model index": ({"model-index": [{"name": "m"}]}, "Hugging Face's evaluation", "geneb-ci pack"),
    "log": (
        {name: {"mean": 0.5, "std": 0.1} for name in ("mcc", "accuracy", "f1_score")},
        "a log of upstream's pipeline of one task",
        "geneb-ci pack",
    ),
    "config": ({"model_type": "bert", "architectures": ["B"]}, "config.json of a model", "new"),
    "index": ({"metadata": {}, "weight_map": {}}, "the index of a model's weights", "new"),
    "GitHub": (
        {"message": "Not Found", "documentation_url": "https://docs.github.com", "status": "404"},
        "an answer of a web server",
        "download the file itself",
    ),
    "the Hub": (
        {"error": "Repository not found"},
        "an answer of a web server",
        "download the file",
    ),
    "contents": (
        {"name": "m.json", "sha": "0" * 40, "content": "e30=", "encoding": "base64"},
        "an answer of GitHub's API",
        "vnd.github.raw",
    ),
    "HELM's statistics": (
        [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 0.5}],
        "statistics of HELM",
        "geneb-harness run",
    ),
    "scikit-learn": (
        {"0": {"precision": 0.5}, "accuracy": 0.5, "macro avg": {"f1-score": 0.5}},
        "a report of scikit-learn's classification_report",
        "geneb-ci pack",
    ),
    "trainer": ({"epoch": 3, "log_history": [{"loss": 1}]}, "the state of a trainer", "run"),
    "W&B": ({"_runtime": 3, "_step": 4, "eval/mcc": 0.4}, "the state of a trainer", "run"),
    "SARIF": ({"version": "2.1.0", "runs": []}, "a report of findings", "pass the submission"),
    "schema": ({"$schema": "https://json-schema.org/", "properties": {}}, "JSON schema", "pass a"),
    "benchmark": (
        {"tasks": [], "regimes": [], "metrics": [], "protocol": {}},
        "a definition of a benchmark",
        "pass a submission",
    ),
    "run record": ({"probe": {}, "tasks": {}}, "this is a run record", "name a submission"),
}
COMMANDS = ("check", "matrices", "audit commit")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_another_program_is_named_by_every_command(
    name, command, tmp_path, monkeypatch, capsys
):
    value, words, fix = FORMATS[name]
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text(json.dumps(value), encoding="utf-8")
    assert main([*command.split(), "x.json"]) == (11 if command == "check" else 3)
    streams = capsys.readouterr()
    text = " ".join((streams.out + streams.err).split())
    assert words in text
    assert fix.casefold() in text.casefold()
    assert ", not a submission" in text


TEXTS = {
    "CSV, decimal commas": ("task;MCC;Acc;F1\nH3;0,5;0,7;0,6\n", "a table of values", "pack"),
    "TSV": ("task\tMCC\nH3\t0.5\n", "a table of values (CSV)", "pack"),
    "quoted CSV": ('"task","MCC"\n"H3","0.5"\n', "a table of values (CSV)", "pack"),
    "YAML": ("model_id: x\nresults:\n  full: {}\n", "YAML", "geneb-harness run"),
    "YAML with a head": ("---\nmodel_id: x\n", "YAML", "geneb-harness run"),
    "Python": ("import torch\n\nclass Own: ...\n", "a module of Python", "extractors check"),
    "a script": ("#!/usr/bin/env python3\nx = 1\n", "a module of Python", "extractors check"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_no_json_is_named_by_every_command(
    name, command, tmp_path, monkeypatch, capsys
):
    text, words, fix = TEXTS[name]
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text(text, encoding="utf-8")
    assert main([*command.split(), "x.json"]) == (11 if command == "check" else 3)
    output = " ".join(" ".join(capsys.readouterr()).split())
    assert words in output
    assert fix in output


@pytest.mark.parametrize("damage", ["NaN", "Infinity", '1, "a": 2'])
def test_a_foreign_file_is_named_alone_whatever_else_its_json_has(
    damage, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    text = json.dumps(MTEB)[:-1] + f', "a": {damage}}}'
    Path("x.json").write_text(text, encoding="utf-8")
    assert main(["check", "x.json", "--format", "json"]) == 11
    report = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in report["findings"]] == ["foreign-format"]


def test_lines_of_json_and_a_file_of_eval_results_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text('{"a": 1}\n{"a": 2}\n', encoding="utf-8")
    Path("b.json").write_text("- dataset:\n    id: org/d\n    task_id: t\n  value: 0.5\n")
    Path("c.json").write_text(f"```json\n{TEXT}\n```\n")
    assert main(["check", "a.json", "b.json", "c.json"]) == 11
    text = " ".join(capsys.readouterr().out.split())
    assert "the file is JSON Lines" in text
    assert "the file is a file of Hugging Face's `.eval_results`" in text
    assert "the file is a code block of Markdown" in text


@pytest.mark.parametrize("name", ["W&B", "SARIF", "benchmark"])
def test_a_compared_file_of_another_program_is_named(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text(json.dumps(FORMATS[name][0]), encoding="utf-8")
    assert main(["compare", "x.json", "y.json"]) == 3
    assert f"x.json: this is {FORMATS[name][1]}" in capsys.readouterr().err


def test_a_compared_file_that_is_no_json_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_bytes(POINTER)
    assert main(["compare", "x.json", "y.json"]) == 3
    errors = capsys.readouterr().err
    assert "x.json: the file is a Git LFS pointer" in errors
    assert "git lfs pull" in errors


def test_a_file_in_the_place_of_a_folder_of_results_is_told_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_bytes(POINTER)
    assert main(["pack", "x.json"]) == 2
    assert "x.json is a file, expected the folder of a model's results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (POINTER, "x.py is a Git LFS pointer, not a module of Python"),
        (
            b"<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> other\n",
            "x.py has merge conflict markers on lines 1",
        ),
        (b"<!DOCTYPE html>\n<html></html>\n", "x.py is an HTML page, not a module of Python"),
    ],
)
def test_an_extractor_that_is_something_else_is_named_before_it_runs(raw, words, tmp_path):
    (tmp_path / "x.py").write_bytes(raw)
    with pytest.raises(ExtractorError, match=words):
        load(f"{tmp_path}/x.py:Own")
