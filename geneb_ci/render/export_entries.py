"""Exports rows to other registries: evaluation results on the Hub, and logs of Every Eval Ever."""

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from geneb_ci import __version__
from geneb_ci.audit.trust.attestation import SCORE_EVIDENCE_MEANING, Author, ScoreEvidence
from geneb_ci.board.columns import Row
from geneb_ci.board.rows import leaderboards
from geneb_ci.board.score_list import scored_cells
from geneb_ci.board.site.inputs import Site
from geneb_ci.board.site.links import HUB_ADDRESS, HUB_ID, RepositoryLinks
from geneb_ci.common.errors import UsageProblem
from reference_harness.formats.submission import CellEvidence, SubmissionV11, SubmissionV12
from reference_harness.formats.text import plural

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

MEANS, CELLS = ".eval_results/geneb.yaml", ".eval_results/geneb-tasks.yaml"
"""Files of the Hub's evaluation results: means, and scores of single cells."""
OVERALL_MEANS = ("macro", "micro")
"""The two means over all tasks."""

EVERY_EVAL_EVER_VERSION = "0.3.0"
"""Version of the Every Eval Ever schema that the logs follow."""
METRIC_TERMS = {
    "MCC": ("mcc", "Matthews correlation coefficient", -1.0),
    "Acc": ("accuracy", "Accuracy", 0.0),
    "F1": ("f1_macro", "F1, mean over the classes", 0.0),
}
"""By metric: its id and name in Every Eval Ever, and its lowest value; the highest is 1."""
NOT_STATED = "not-stated"
"""The developer of a model whose repository is unknown, as the schema has no word for that."""
_DEVICES = {f"{name}{number}" for name in ("com", "lpt") for number in range(10)}
"""Names of devices, which Windows reserves."""
_RESERVED = {"data", "con", "prn", "aux", "nul"} | _DEVICES
"""Folder names that the datastore of Every Eval Ever or Windows reserves."""


class RecordLink(NamedTuple):
    """A link to an audit record that the evidence of a row is based on."""

    audit_id: str
    address: str
    """An https address, or the path in the repository if its address is not configured."""


def record_links(row: Row, site: Site) -> list[RecordLink]:
    """Return links to the signed records that the evidence of a row is based on."""
    layout = site.layout
    links: list[RecordLink] = []
    for audit_id in row.records:
        path = (layout.audits or layout.root) / row.submission.model_id / f"{audit_id}.json"
        address = next(iter(RepositoryLinks(site).file("", path)), None)
        is_inside = path.is_relative_to(layout.root)
        path_in_repository = path.relative_to(layout.root).as_posix() if is_inside else path.name
        links.append(RecordLink(audit_id, address.address if address else path_in_repository))
    return links


class ValueDescription(NamedTuple):
    """Meaning of an exported value, and who vouches for the value."""

    meaning: str
    """Meaning of the value as a text, such as the name of its metric."""
    attested_by: str
    """Who vouches for the value."""
    is_audited: bool
    """Whether an audit of the row covers the value."""


def _first_page(row: Row, site: Site, *, is_audited: bool = True) -> dict[str, str]:
    """Return `source_url` and `source_name` of the best page about a row; {} if none is known.

    It is an audit record if `is_audited`, else the row's page on the board, else its submission.
    """
    model, layout = row.submission.model_id, site.layout
    for record in record_links(row, site) if is_audited else ():
        if record.address.startswith("https://"):
            source_name = f"{site.benchmark.name} audit record {record.audit_id}"
            return {"source_url": record.address, "source_name": source_name}
    if page := site.address(f"models/{model}.html"):
        return {"source_url": page, "source_name": f"{site.benchmark.name} board"}
    path = layout.submissions / f"{model}.json" if layout.submissions else None
    for link in RepositoryLinks(site).file("", path):
        source_name = f"{site.benchmark.name} submission"
        return {"source_url": link.address, "source_name": source_name}
    return {}


def require_hub_data(
    site: Site,
    need: str = "every entry of eval-results must name a data set on the Hub",
    fix: str = "pass --format with another format: csv, parquet or every-eval-ever",
) -> None:
    """Raise UsageProblem, with what needs it, unless the task data is a data set on the Hub."""
    repo_id = site.benchmark.dataset.repo_id
    if HUB_ID.fullmatch(repo_id) is None:
        raise UsageProblem(
            f"the task data of {site.benchmark.name} is {repo_id!r}, which is not a data set on "
            f"the Hub; {need}",
            fix,
        )


def eval_results(site: Site, tokens: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the `.eval_results` files of each model, in a folder named by the model's id.

    `tokens` gives, by model id, the verify token that the model's owner received; entries of other
    models have none.
    """
    import yaml  # other formats do without
    from huggingface_hub import eval_result_entries_to_yaml  # 0.3 s

    # Both dumpers write the same bytes; the faster one in C is part of every wheel.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    require_hub_data(site)
    summaries = _means_by_model(site)
    for row in site.rows:
        model, token = row.submission.model_id, tokens.get(row.submission.model_id)
        files = {
            MEANS: [*_mean_entries(row, site, summaries.get(model, {}), token)],
            CELLS: [*_cell_entries(row, site, token)],
        }
        for file_name, result_entries in files.items():
            result_values = eval_result_entries_to_yaml(result_entries)
            yaml_text = yaml.dump(result_values, Dumper=dumper, sort_keys=False, width=10_000)
            yield f"{model}/{file_name}", yaml_text.encode()


def _means_by_model(site: Site) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the means by model and regime, without regimes in which a cell is missing."""
    summaries: dict[str, dict[str, Mapping[str, Any]]] = {}
    for regime, rows in leaderboards(site.rows, site.benchmark)[0]["data"].items():
        for row in rows:
            summaries.setdefault(row["model"], {})[regime] = row
    return summaries


def _mean_entries(
    row: Row, site: Site, means_by_regime: Mapping[str, Mapping[str, Any]], token: str | None
) -> "Iterator[EvalResultEntry]":
    """Yield an evaluation result for each mean of a row."""
    meanings = {"macro": "mean of the category means", "micro": "mean over all tasks"}
    attestation, tasks = row.attestation, len(site.benchmark.tasks)
    for regime, means in means_by_regime.items():
        rerun_count = len(attestation.rerun.get(regime, ()))
        attested_by = (
            f"{Author.BOARD} from {plural(tasks, 'score')}, of which {rerun_count} were rerun"
        )
        is_audited = regime not in attestation.unconfirmed_regimes
        for summary in OVERALL_MEANS:
            for metric in site.benchmark.metrics:
                task_id = f"{summary}.{regime}.{metric}"
                score = means[f"{summary}_{metric}"]
                description = ValueDescription(
                    f"{metric}, {meanings[summary]}", attested_by, is_audited=is_audited
                )
                yield _eval_result(row, site, task_id, score, token, description)


def _cell_entries(row: Row, site: Site, token: str | None) -> "Iterator[EvalResultEntry]":
    """Yield an evaluation result for each score of a row."""
    metrics = site.benchmark.metrics
    for regime, task, scores, score_evidence in scored_cells(row, site.benchmark):
        attested_by = SCORE_EVIDENCE_MEANING[score_evidence]
        for metric, score in zip(metrics, scores, strict=True):
            description = ValueDescription(
                metric, attested_by, is_audited=score_evidence is not ScoreEvidence.SUBMITTED
            )
            yield _eval_result(row, site, f"{task.id}.{regime}.{metric}", score, token, description)


def _eval_result(
    row: Row,
    site: Site,
    task_id: str,
    score: float,
    token: str | None,
    description: ValueDescription,
) -> "EvalResultEntry":
    """Return a score as an evaluation result of the Hub."""
    from huggingface_hub import EvalResultEntry

    submission, dataset = row.submission, site.benchmark.dataset
    records = [link.address for link in record_links(row, site)] if description.is_audited else []
    notes = [
        description.meaning,
        submission.harness_version,
        f"evidence of the row: {row.evidence}",
    ]
    notes.append(f"attested: {description.attested_by}")
    notes += [f"audit records: {', '.join(records)}"] if records else []
    return EvalResultEntry(
        dataset_id=dataset.repo_id,
        task_id=task_id,
        value=float(score),
        dataset_revision=dataset.revision,
        verify_token=token,
        date=submission.run.finished_at if isinstance(submission, SubmissionV11) else None,
        notes="; ".join(notes),
        **_first_page(row, site, is_audited=description.is_audited),
    )


def evidence_of(row: Row, regime: str, task: str) -> CellEvidence | None:
    """Return the submission's evidence of a cell; None before format 1.1 or where it has none."""
    submission = row.submission
    if not isinstance(submission, SubmissionV11):
        return None
    return submission.evidence.get(regime, {}).get(task)


def every_eval_ever(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield the Every Eval Ever log of each row: its path in their datastore, and its JSON.

    The file name is a UUID computed from the content. Raises UsageProblem if the
    time of the build is unknown, which each log must state.
    """
    if site.built.when is None:
        raise UsageProblem(
            "a log of Every Eval Ever needs a time, but FOLDER has no git commit whose time it "
            "could have",
            "pass --time, such as --time 2026-11-20T08:30:00Z",
        )
    collection = portable_name(re.sub(r"[^a-z0-9]+", "-", site.benchmark.name.lower()).strip("-"))
    for row in site.rows:
        log = _every_eval_ever_log(row, site, collection)
        log_bytes = _json_bytes(log)
        log_id = uuid.UUID(bytes=hashlib.sha256(log_bytes).digest()[:16], version=4)
        developer, model = _log_folders(row, site)
        yield f"data/{collection}/{developer}/{model}/{log_id}.json", log_bytes


def _json_bytes(document: object) -> bytes:
    """Return a document as compact JSON in UTF-8."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _json_text(document: object) -> str:
    """Return a document as compact JSON."""
    return _json_bytes(document).decode()


def portable_name(name: str) -> str:
    """Return a folder name that is valid on every system and in the datastore."""
    folder = name if name[-1:] not in {".", ""} else f"{name}_"
    return f"{folder}_" if folder.partition(".")[0].lower() in _RESERVED else folder


def hub_id(row: Row, site: Site) -> str:
    """Return the Hub repository of a row's weights; "" if it is unknown or not on the Hub."""
    submission, model_entry = row.submission, site.model_entry(row.submission.model_id)
    ids: list[str] = []
    if isinstance(submission, SubmissionV11) and submission.run.model.kind == "huggingface":
        ids.append(submission.run.model.location)
    if (
        model_entry is not None
        and model_entry.weights is not None
        and model_entry.weights.kind == "huggingface"
    ):
        ids.append(model_entry.weights.location)
    if submission.meta.url.startswith(f"{HUB_ADDRESS}/"):
        ids.append(submission.meta.url.removeprefix(f"{HUB_ADDRESS}/").rstrip("/"))
    return next((location for location in ids if HUB_ID.fullmatch(location)), "")


def _log_folders(row: Row, site: Site) -> tuple[str, str]:
    """Return the two folders of a log: developer and model."""
    if repository := hub_id(row, site):
        developer, _, model = repository.partition("/")
    else:
        developer, model = _developer_of(row, site), row.submission.model_id
    return portable_name(developer), portable_name(model)


def _developer_of(row: Row, site: Site) -> str:
    """Return the owner of the repository with the authors' code, or NOT_STATED."""
    model_entry = site.model_entry(row.submission.model_id)
    path = (
        urlsplit(model_entry.code.repository).path
        if model_entry is not None and model_entry.code
        else ""
    )
    owner = path.strip("/").partition("/")[0]
    return owner if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", owner) else NOT_STATED


def _every_eval_ever_log(row: Row, site: Site, collection: str) -> dict[str, Any]:
    """Return the log of a row, with all its scores; `collection` is the folder of the benchmark."""
    submission, when = row.submission, str(site.built.when)
    timestamp = str(int(datetime.fromisoformat(when).timestamp()))
    run = submission.run if isinstance(submission, SubmissionV11) else None
    return {
        "schema_version": EVERY_EVAL_EVER_VERSION,
        "evaluation_id": f"{collection}/{submission.model_id}/{timestamp}",
        **({"evaluation_timestamp": run.finished_at} if run else {}),
        "retrieved_timestamp": timestamp,
        "source_metadata": _source_metadata(row, site),
        "eval_library": {
            "name": site.benchmark.name,
            "version": submission.harness_version,
            "additional_details": {
                **({"url": site.publication.code} if site.publication.code else {}),
                **({"run": _json_text(run.model_dump(mode="json"))} if run else {}),
            },
        },
        "model_info": _model_info(row, site),
        "evaluation_results": [*_log_results(row, site)],
    }


def _source_metadata(row: Row, site: Site) -> dict[str, Any]:
    """Return who evaluated the model, who vouches for the scores, and where they are published."""
    submission, records = row.submission, record_links(row, site)
    details = {
        "exported_by": f"geneb-ci {__version__}",
        "submission_format": submission.schema_version,
        "submitted_by": submission.meta.submitted_by,
        "provenance": submission.meta.provenance,
        "authorship": str(row.authorship),
        "evidence": str(row.evidence),
        "trust_level": str(row.level),
    }
    if site.publication.paper:
        details["paper"] = site.publication.paper.address
    if submission.schema_ is not None:
        details["submission_schema"] = submission.schema_
    statements = row.attestation.every_statement
    details["attested"] = _json_text([statement._asdict() for statement in statements])
    if records:
        details["audit_records"] = " ".join(link.address for link in records)
    if isinstance(submission, SubmissionV11) and submission.gaps:
        details["gaps"] = _json_text(submission.gaps)
    if isinstance(submission, SubmissionV12) and submission.receipt is not None:
        details["receipt"] = _json_text(submission.receipt.model_dump(mode="json"))
    page = _first_page(row, site)
    url = {"source_organization_url": page["source_url"]} if page else {}
    return {
        "source_name": f"{site.benchmark.name} leaderboard",
        "source_type": "documentation",
        "source_organization_name": f"{site.benchmark.name} leaderboard",
        **url,
        # In official rows the benchmark's authors evaluated models of others; else it is unknown.
        "evaluator_relationship": "third_party" if row.authorship == "official" else "other",
        "additional_details": details,
    }


def _model_info(row: Row, site: Site) -> dict[str, Any]:
    """Return what Every Eval Ever states about a model."""
    submission, repository = row.submission, hub_id(row, site)
    model_entry = site.model_entry(submission.model_id)
    has_weights = bool(repository) or (model_entry is not None and model_entry.weights is not None)
    meta = submission.meta
    return {
        "name": meta.display,
        "id": repository or submission.model_id,
        "developer": repository.partition("/")[0] if repository else _developer_of(row, site),
        "additional_details": {
            "deployment_type": "self_deployed",
            "model_availability": "open_weights" if has_weights else "unknown",
            "model_id": submission.model_id,
            "params": str(meta.params),
            "url": meta.url,
            "zero_shot": "true" if meta.zero_shot else "false",
            "training_data": meta.training_data,
        },
    }


def _log_results(row: Row, site: Site) -> Iterator[dict[str, Any]]:
    """Yield the result of each metric in each task and regime."""
    benchmark, dataset = site.benchmark, site.benchmark.dataset
    is_on_hub = HUB_ID.fullmatch(dataset.repo_id) is not None
    for regime, task, scores, score_evidence in scored_cells(row, benchmark):
        evidence = evidence_of(row, regime, task.id)
        attested_by = SCORE_EVIDENCE_MEANING[score_evidence]
        size = evidence.n_test if evidence is not None else task.n_test
        source: dict[str, Any] = {"dataset_name": task.label}
        if is_on_hub:
            source |= {"source_type": "hf_dataset", "hf_repo": dataset.repo_id, "hf_split": "test"}
            source |= {} if size is None else {"samples_number": size}
        else:
            source |= {"source_type": "other"}
        source["additional_details"] = {
            "revision": dataset.revision,
            "task": task.id,
            "category": task.category,
        }
        for metric, score in zip(benchmark.metrics, scores, strict=True):
            yield {
                "evaluation_result_id": f"{task.id}/{regime}/{metric}",
                "evaluation_name": f"{benchmark.name} {task.id} {regime}",
                "source_data": source,
                "metric_config": _metric_description(metric, regime, site),
                "score_details": {
                    "score": score,
                    **_score_details(
                        evidence, metric, attested_by, is_first=metric == benchmark.metrics[0]
                    ),
                },
            }


def _metric_description(metric: str, regime: str, site: Site) -> dict[str, Any]:
    """Return the description of a metric in a regime."""
    metric_name, title, lowest = METRIC_TERMS[metric]
    protocol = site.benchmark.protocol
    shots = protocol.few_shot_k.get(regime)
    return {
        "metric_id": metric_name,
        "metric_name": title,
        "metric_kind": metric_name,
        "metric_unit": "proportion",
        "metric_parameters": {
            "regime": regime,
            **({} if shots is None else {"examples_per_class": shots}),
            "seeds": len(protocol.seeds),
        },
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": lowest,
        "max_score": 1.0,
    }


def _score_details(
    evidence: CellEvidence | None, metric: str, attested_by: str, *, is_first: bool
) -> dict[str, Any]:
    """Return who vouches for a score, and the scores of its seeds.

    The evidence of the whole cell is added only to its first metric. Who vouches for that evidence
    is in the member `attested` of the log's source.
    """
    if evidence is None:
        return {"details": {"attested": attested_by}}
    details = {"attested": attested_by, "per_seed": _json_text(getattr(evidence.per_seed, metric))}
    if is_first:
        details["cell"] = _json_text(evidence.model_dump(mode="json", exclude={"per_seed"}))
    return {"details": details}
