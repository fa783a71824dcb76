"""Exports rows as tables, in CSV or Parquet, and describes data sets in Croissant."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from geneb_ci.audit.trust.attestation import SCORE_EVIDENCE_MEANING, ScoreEvidence
from geneb_ci.board.columns import COLUMNS, Row
from geneb_ci.board.parts import unknown_sizes
from geneb_ci.board.score_list import ScoredCell, scored_cells
from geneb_ci.board.site.inputs import Site, SourceCommit, site_of
from geneb_ci.board.site.links import HUB_ADDRESS, LICENCE
from geneb_ci.board.tables import (
    CODEBOOK_FILE,
    PAGE_TABLES,
    DescribedTable,
    TableColumn,
    codebook,
    csv_text,
    parquet_text,
    values_table,
)
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.parquet import ColumnKind
from geneb_ci.render.export_entries import (
    evidence_of,
    record_links,
    require_hub_data,
)
from reference_harness.formats.base import Count, Hex40, Hex64, StrictModel, parsed
from reference_harness.formats.files import NotReadable, read_text

MANIFEST, MANIFEST_BYTES_MAX = "manifest.json", 10_000_000  # 100 tasks take 40 kB
# All terms of Croissant 1.0, since readers warn about a context that lacks one.
_CROISSANT_TERMS = """citeAs column equivalentProperty extract field fileProperty fileObject fileSet
format includes isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated
replace samplingRate separator source subField transform"""
CROISSANT_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS.split()},
}
"""The JSON-LD context of Croissant 1.0."""
CROISSANT_VERSION = "http://mlcommons.org/croissant/1.0"
"""Address by which a description names its version of Croissant."""
_DATA_TYPES = {"number": "sc:Float", "count": "sc:Integer", "flag": "sc:Boolean"}
"""By kind of a column: its data type in Croissant."""
_TASK_FILE = re.compile(r"tasks/([A-Za-z0-9._-]+)/(train|test)\.csv(\.gz)?", re.ASCII)
"""Path of the file of a split in the task data."""


def exported_tables(site: Site) -> tuple[DescribedTable, ...]:
    """Return the tables of rows, cells and values, sorted by model id in lower case."""
    has_errors = not unknown_sizes(site.benchmark)
    score_table = values_table(site.rows, site.benchmark, has_errors=has_errors)
    return _models_table(site), _scores_table(site), score_table


def _models_table(site: Site) -> DescribedTable:
    """Return the table of models: one line per row of the board."""
    named_columns = [(c.download or c.key, c) for c in COLUMNS]
    columns = [
        TableColumn(name, _COLUMN_KIND_BY_VALUE_KIND.get(c.kind, "text"), c.about)
        for name, c in named_columns
    ]
    columns += [
        TableColumn("provenance", "text", "What the submission says of its level."),
        TableColumn("format", "text", "Version of the submission's format."),
        TableColumn("harness_version", "text", "Version of the harness, as submitted."),
        TableColumn("records", "text", "Signed audit records, separated by spaces."),
    ]
    lines = []
    for row in site.rows:
        facts = [_cell_value(column.value(row)) for _, column in named_columns]
        records = " ".join(link.address for link in record_links(row, site))
        submission = row.submission
        versions = (submission.schema_version, submission.harness_version)
        lines.append((*facts, submission.meta.provenance, *versions, records or None))
    return DescribedTable(
        "models", "One line for each model of the board.", tuple(columns), lambda: lines
    )


_COLUMN_KIND_BY_VALUE_KIND: Mapping[str, ColumnKind] = {
    "size": "count",
    "count": "count",
    "flag": "flag",
}
"""By kind of values on the board: the kind of the exported column; others are text."""


def _cell_value(value: object) -> object:
    """Return a value that fits in one cell; mappings and lists become JSON."""
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return value


def _scores_table(site: Site) -> DescribedTable:
    """Return the table of scores: one line per model, task and regime."""
    metrics = site.benchmark.metrics
    meanings = "; ".join(f"`{name}`: {text}" for name, text in SCORE_EVIDENCE_MEANING.items())
    columns = [
        TableColumn("model", "text", "Id of the model."),
        TableColumn("regime", "text", "How much training data the probe gets."),
        TableColumn("task", "text", "Id of the task."),
        TableColumn("category", "text", "Category of the task."),
        TableColumn("n_test", "count", "Sequences of the test split."),
    ]
    columns += (TableColumn(m, "number", f"{m}, the mean over the seeds.") for m in metrics)
    columns += (
        TableColumn(f"{m}_per_seed", "numbers", f"{m} of each seed, where it was submitted.")
        for m in metrics
    )
    columns.append(
        TableColumn(
            "attested",
            "text",
            "What audits show of the three means; those of a seed rest on the "
            f"submitter's word unless `{ScoreEvidence.RECOMPUTED}`. {meanings}.",
        )
    )
    lines = [
        _score_row(row, cell, metrics)
        for row in site.rows
        for cell in scored_cells(row, site.benchmark)
    ]
    return DescribedTable(
        "scores", "One line for each model, regime and task.", tuple(columns), lambda: lines
    )


def _score_row(row: Row, cell: ScoredCell, metrics: Iterable[str]) -> tuple[Any, ...]:
    """Return a line of the table of scores."""
    regime, task, scores, score_evidence = cell
    evidence = evidence_of(row, regime, task.id)
    return (
        *(row.submission.model_id, regime, task.id, task.category),
        task.n_test if evidence is None else evidence.n_test,
        *scores,
        *(evidence and list(getattr(evidence.per_seed, metric)) for metric in metrics),
        str(score_evidence),
    )


def csv_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield the tables as CSV (RFC 4180, UTF-8), and their codebook."""
    exported = exported_tables(site)
    for table in exported:
        yield f"{table.name}.csv", csv_bytes(table)
    yield CODEBOOK_FILE, codebook(exported)


def csv_bytes(table: DescribedTable) -> bytes:
    """Return a table as CSV."""
    return b"".join(csv_text(table))


def parquet_of(rows: Iterable[Row], layout: Layout) -> dict[str, bytes]:
    """Return the tables of a local board in Parquet, and their codebook, by file name."""
    site = site_of(rows, {}, benchmark_of(layout), layout, SourceCommit())
    return dict(parquet_files(site)) | {
        CODEBOOK_FILE: codebook((*exported_tables(site), *PAGE_TABLES))
    }


def parquet_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield the tables as Parquet, and their codebook."""
    exported = exported_tables(site)
    for table in exported:
        yield f"{table.name}.parquet", b"".join(parquet_text(table))
    yield CODEBOOK_FILE, codebook(exported)


def croissant_files(site: Site, data_folder: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield the tables as CSV, and descriptions in Croissant of the tables and of the task data.

    `data_folder` was written by `geneb-ci data pull`; without it, the task data is not described.
    Raises UsageProblem if its manifest is missing or describes other data than the benchmark pins.
    """
    task_data = (
        None
        if data_folder is None
        else _task_data_description(site, read_manifest(data_folder, site))
    )
    contents = [(table, csv_bytes(table)) for table in exported_tables(site)]
    yield "croissant.json", _json_bytes(_board_description(site, contents))
    yield from ((f"{table.name}.csv", content) for table, content in contents)
    if task_data is not None:
        yield "tasks-croissant.json", _json_bytes(task_data)


def _json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as indented JSON in UTF-8."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


def _dataset_description(
    site: Site, name: str, description: str, address: str, members: Mapping[str, Any]
) -> Any:
    """Return the description of a data set in Croissant; `members` are added."""
    when, paper = site.built.when, site.publication.paper
    return {
        "@context": CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CROISSANT_VERSION,
        "name": name,
        "description": description,
        "url": address,
        "citeAs": f"{paper.title}, {paper.address}" if paper else site.name,
        **({"datePublished": when} if when else {}),
        **members,
    }


def _board_description(
    site: Site, contents: Iterable[tuple[DescribedTable, bytes]]
) -> dict[str, Any]:
    """Return the description of the exported tables in Croissant."""
    files = [
        _file_description(f"{t.name}.csv", f"{t.name}.csv", "text/csv", content)
        for t, content in contents
    ]
    record_sets = [_record_set_description(table) for table, _ in contents]
    commit = site.built.commit
    # Croissant requires MAJOR.MINOR.PATCH. The board has no version; its commit is build metadata.
    version = f"0.0.0+{commit[:12]}" if commit else "0.0.0"
    description: dict[str, Any] = _dataset_description(
        site,
        f"{site.benchmark.name} leaderboard",
        f"Scores of frozen embeddings of {site.publication.models} on each task, in each regime. A "
        "text that begins like a formula has an apostrophe before it.",
        site.address("index.html") or site.publication.code or "",
        {"license": LICENCE, "version": version, "distribution": files, "recordSet": record_sets},
    )
    return description


def _file_description(name: str, address: str, media_type: str, content: bytes) -> dict[str, Any]:
    """Return the description of a file, given its bytes."""
    digest = hashlib.sha256(content).hexdigest()
    return _file_object(name, address, media_type, digest, len(content))


def _file_object(
    name: str, address: str, media_type: str, sha256: str, size: int
) -> dict[str, Any]:
    """Return the description of a file, given its digest and size."""
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": address,
        "contentSize": f"{size} B",
        "encodingFormat": media_type,
        "sha256": sha256,
    }


def _record_set_description(table: DescribedTable) -> dict[str, Any]:
    """Return the description of the columns of a table."""
    fields = [
        _field_description(table.name, column.name, column.about, column.type, f"{table.name}.csv")
        for column in table.columns
    ]
    cell_keys = ["model", "regime", "task"]
    keys = {"models": ["model"], "scores": cell_keys, "values": [*cell_keys, "metric"]}[table.name]
    fields[0] |= {"references": {"field": {"@id": "models/model"}}} if len(keys) > 1 else {}
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.about,
        "key": [{"@id": f"{table.name}/{key}"} for key in keys],
        "field": fields,
    }


def _field_description(
    parent: str, name: str, description: str, data_type: str, file: str
) -> dict[str, Any]:
    """Return the description of a column."""
    return {
        "@type": "cr:Field",
        "@id": f"{parent}/{name}",
        "name": name,
        "description": description,
        "dataType": _DATA_TYPES.get(data_type, "sc:Text"),
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }


class DataFile(StrictModel):
    """A file of task data, as the manifest names it."""

    sha256: Hex64
    bytes: Count


class DataManifest(StrictModel):
    """The members of `manifest.json`, in a folder of task data, that are read here."""

    schema_version: str
    repo_id: str
    revision: Hex40
    files: dict[str, DataFile]
    tasks: dict[str, Any]


def read_manifest(folder: Path, site: Site) -> DataManifest:
    """Return the manifest of a folder of task data.

    Raises UsageProblem if it is missing, or describes other data than the benchmark pins.
    """
    path, pinned = folder / MANIFEST, site.benchmark.dataset
    fix = f"fetch the data: geneb-ci data pull {folder}"
    need = "only such a data set can be described in Croissant"
    require_hub_data(site, need, "leave out --data, so that only the tables are described")
    try:
        manifest = parsed(DataManifest, read_text(path, MANIFEST_BYTES_MAX))
    except NotReadable as error:
        raise UsageProblem(f"{path}: {error.reason}", fix) from error
    if (manifest.repo_id, manifest.revision) != (pinned.repo_id, pinned.revision):
        raise UsageProblem(
            f"{path}: the data is {manifest.repo_id} at {manifest.revision}; the benchmark "
            f"pins {pinned.repo_id} at {pinned.revision}",
            fix,
        )
    return manifest


def _task_data_description(site: Site, manifest: DataManifest) -> dict[str, Any]:
    """Return the description of the task data: each file on the Hub, and its two columns."""
    dataset, benchmark = site.benchmark.dataset, site.benchmark
    files, record_sets = [], []
    for path, file in sorted(manifest.files.items()):
        match = _TASK_FILE.fullmatch(path)
        if match is None or match[1] not in benchmark.by_id:
            continue
        address = f"{HUB_ADDRESS}/datasets/{dataset.repo_id}/resolve/{dataset.revision}/{path}"
        media_type = "application/gzip" if match[3] else "text/csv"
        files.append(_file_object(path, address, media_type, file.sha256, file.bytes))
        record_sets.append(
            _split_description(benchmark.by_id[match[1]].label, f"{match[1]}/{match[2]}", path)
        )
    if not files:
        raise UsageProblem(
            f"{MANIFEST} lists none of the benchmark's files tasks/TASK/train.csv or test.csv",
            "pass the folder that `geneb-ci data pull` wrote",
        )
    description: dict[str, Any] = _dataset_description(
        site,
        f"{benchmark.name} tasks",
        "Sequences and class labels of the benchmark's classification tasks, as it pins them.",
        f"{HUB_ADDRESS}/datasets/{dataset.repo_id}/tree/{dataset.revision}",
        {"version": f"0.0.0+{dataset.revision}", "distribution": files, "recordSet": record_sets},
    )
    return description


def _split_description(label: str, split: str, file: str) -> dict[str, Any]:
    """Return the description of the columns of a split of task data."""
    fields: Iterable[tuple[str, str, str]] = (
        ("text", "Nucleotide sequence.", "text"),
        ("label", "Number of the class.", "count"),
    )
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"{label}, {split.rpartition('/')[2]} split.",
        "field": [
            _field_description(split, field, about, data_type, file)
            for field, about, data_type in fields
        ],
    }
