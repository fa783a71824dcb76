"""Edges of single rules that each let something through, or crashed, once."""

import hashlib
import json
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.check.registry import RULES, select
from geneb_ci.check.rounding import rounding_of
from geneb_ci.check.rules.arithmetic import interval_text
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.benchmark import load_benchmark
from geneb_ci.submission import names
from geneb_ci.submission.peers import normal_model_id, read_row, results_digest
from geneb_ci.submission.scanner import scan
from geneb_ci.submission.structure import _NULL_FIX, Validator, check_structure
from reference_harness.formats.files import member_at
from reference_harness.formats.text import plural
from tests.each import each
from tests.paths import ROOT, SUBMISSIONS
from tests.small import BENCHMARK_FILE, small, small_v11, small_v12
from tests.submission.schema_engine import check_by_schema

NOTE = "no-run-details"
Found = list[tuple[str, str, str]]


@pytest.fixture(params=[check_structure, check_by_schema], ids=["models", "schema"])
def findings_of(request, tmp_path) -> Callable[[Any], Found]:
    """Return a maker of findings, by either engine, for the small benchmark."""
    engine: Validator = request.param
    (tmp_path / "small.json").write_bytes(BENCHMARK_FILE.read_bytes())
    table = '[tool.geneb-ci]\nbenchmark = "small.json"\nsubmissions = "none"\n'
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")

    def check(document: Any) -> Found:
        path = tmp_path / "row.json"
        text = document if isinstance(document, str) else json.dumps(document)
        path.write_text(text, encoding="utf-8")
        findings = Checker(RULES, engine).check(path).findings
        return [(f.rule, f.pointer, f.message) for f in findings if f.rule != NOTE]

    return check


@each(
    ("url", "reason"),
    [
        ("https://huggingface.co/org/model", ""),
        ("https://doi.org/10.5281/zenodo.7995778", ""),
        ("", ""),
        ("http://huggingface.co", "does not begin with https://"),
        ("//huggingface.co", "does not begin with https://"),
        ("javascript:alert(1)", "does not begin with https://"),
        ("data:text/html,x", "does not begin with https://"),
        (
            "https://github.com@example.org",
            "has a user name before the host, which can be mistaken for the host",
        ),
        ("https://example.org:8443/x", "names a port"),
        (
            "https://example.org:x/",
            "cannot be parsed: Port could not be cast to integer value as 'x'",
        ),
        ("https://localhost/x", "has no host name"),
        ("https://10.0.0.1/x", "has no host name"),
        ("https://0x7f.0.0.1/x", "has no host name"),
        ("https://[::ffff:10.0.0.1]/x", "has no host name"),
        ("https://example..org", "has no host name"),
        ("https://-example.org", "has no host name"),
        ("https://xn--hggingface-u4a.co", "has a host in punycode, which can look like another"),
        ("https://huggingf\u0430ce.co", "has characters that are not allowed in a URL"),
        ("https://example.org/a b", "has characters that are not allowed in a URL"),
    ],
)
def test_addresses(findings_of, url, reason):
    document = small("row")
    document["meta"]["url"] = url
    expected = [("bad-url", "/meta/url", f"url {json.dumps(url)} {reason}")] if reason else []
    assert findings_of(document) == expected


@pytest.mark.parametrize(
    ("address", "is_refused"),
    [
        ("https://example.org:8443/rows", False),
        ("https://0x7f.1:9/", True),
        ("https://0xa9.254.169.254/", True),
        ("https://0177.0.0x1/", True),
        ("https://127.1", True),
        ("https://rows.localhost/", True),
        ("http://example.org/rows", True),
        ("file:///etc/passwd", True),
        ("https://example.org/rows?x=/", True),
    ],
)
def test_addresses_of_files(findings_of, address, is_refused):
    weights, receipt = small_v11("weights"), small_v12("receipt")
    weights["run"]["model"] |= {"kind": "url", "location": address, "revision": None}
    location = {"kind": "url", "address": address, "revision": None}
    receipt["receipt"] = {"location": location}
    for document, pointer in (
        (weights, "/run/model/location"),
        (receipt, "/receipt/location/address"),
    ):
        pointers = [path for rule, path, _ in findings_of(document) if rule == "bad-url"]
        assert pointers == [pointer] * is_refused


def test_an_empty_provenance_is_a_claim_of_nothing_and_refused(findings_of):
    document = small("row")
    document["meta"]["provenance"] = ""
    assert findings_of(document) == [("self-claimed-level", "/meta/provenance", 'provenance is ""')]


@pytest.mark.parametrize(
    ("began", "ended", "expected"),
    [
        ("2026-11-20T08:30:00Z", "2026-11-20T08:30:00Z", []),
        (
            "2026-11-20T08:30:00Z",
            "2026-11-20",
            [("malformed-value", "/run/finished_at", 'finished_at is "2026-11-20"')],
        ),
        (
            "2026-02-30T08:30:00Z",
            "2026-11-20T08:30:00Z",
            [
                (
                    "impossible-dates",
                    "/run/started_at",
                    'started_at "2026-02-30T08:30:00Z" is not a date',
                )
            ],
        ),
        (
            "\u0662026-11-20T08:30:00Z",
            "2026-11-20T08:30:00Z",
            [
                (
                    "malformed-value",
                    "/run/started_at",
                    'started_at is "\\u0662026-11-20T08:30:00Z"',
                )
            ],
        ),
    ],
)
def test_dates(findings_of, began, ended, expected):
    document = small_v11("row")
    document["run"] |= {"started_at": began, "finished_at": ended}
    assert findings_of(document) == expected


def test_dates_of_an_unknown_format_crash_nothing(findings_of):
    document = small_v11("row") | {"schema_version": "9"}
    document["run"] |= {"started_at": "2026-11-20T08:30:00Z", "finished_at": "2026-11-20"}
    assert findings_of(document) == [
        ("unknown-schema-version", "/schema_version", 'schema_version is "9"'),
        ("impossible-dates", "/run/finished_at", 'finished_at "2026-11-20" is not a date'),
    ]


def test_a_number_of_sequences_out_of_range_is_no_score_out_of_range(findings_of):
    document = small_v11("row")
    evidence = document["evidence"]["full"]["splice_sites"]
    evidence["n_test"] = 0
    evidence["per_seed"]["Acc"][1] = 1.5
    path = "/evidence/full/splice_sites"
    assert findings_of(document) == [
        ("malformed-value", f"{path}/n_test", "n_test is 0"),
        ("score-out-of-range", f"{path}/per_seed/Acc/1", "Acc[1] is 1.5"),
    ]


def test_a_refused_version_is_reported_once(findings_of):
    text = json.dumps(small("row")).replace('"1.0"', "NaN", 1)
    assert findings_of(text) == [
        ("non-finite-number", "/schema_version", "NaN is not a JSON number")
    ]


def test_a_finding_inside_a_member_that_stands_twice_points_into_the_first(tmp_path):
    text = '{"meta": {"params": -1},\n "meta": {"params": 2}}'
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    findings = Checker(RULES).check(tmp_path / "x.json").findings
    places = {(f.rule, f.pointer, f.line, f.column) for f in findings}
    assert ("bad-parameter-count", "/meta/params", 1, 21) in places
    assert ("duplicate-key", "/meta", 2, 2) in places


def test_names_of_contributors_stand_in_messages_only_as_json(findings_of):
    document = small_v11("row")
    name = "a\nb\u00e9"
    document["results"]["full"][name] = 3
    document["run"]["packages"][name] = 1
    document["evidence"]["full"]["splice_sites"]["per_seed"][name] = [1]
    findings = findings_of(document)
    assert [rule for rule, _, _ in findings] == [
        "unknown-task",
        "wrong-type",
        "wrong-type",
        "unknown-field",
    ]
    assert {message for rule, _, message in findings if rule == "wrong-type"} == {
        '"a\\nb\\u00e9" is 3, a number',
        '"a\\nb\\u00e9" is 1, a number',
    }
    assert all(message.isascii() and message.isprintable() for _, _, message in findings)


PEERS = {
    "huge-integer": '{"results": {"full": {"t": {"MCC": ' + "9" * 400 + "}}}}",
    "nan": '{"results": {"full": {"t": {"MCC": NaN}}}}',
    "deep": "[" * 5000,
    "bytes": "\ud800",
    "wrong-shape": '{"results": {"full": [1], "10shot": {"t": 3}, "1shot": null}}',
    "not-an-object": "[]",
    "no-results": '{"results": null}',
    "empty": "",
}


def test_a_broken_peer_crashes_no_rule_of_another(tmp_path):
    for name, text in PEERS.items():
        (tmp_path / f"{name}.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "good.json").write_text(json.dumps(small("good")), encoding="utf-8")
    gone = tmp_path / "gone.json"
    results = list(Checker(RULES).run([*files_of([tmp_path]), gone]))
    assert len(results) == len(PEERS) + 4
    findings = [f for r in results if isinstance(r, FileResult) for f in r.findings]
    assert [f.message for f in findings if f.rule == "check-crashed"] == []


@pytest.mark.parametrize(
    ("digest", "other", "same"),
    [
        ({"r": {"t": {"m": 0.5}}}, {"r": {"t": {"m": 0.5}}}, True),
        ({"r": {"t": {"m": 1, "n": 2}}}, {"r": {"t": {"n": 2.0, "m": 1.0}}}, True),
        ({"r": {"t": {"m": -0.0}}}, {"r": {"t": {"m": 0}}}, True),
        ({"r": {"t": {"m": 0.5}}}, {"r": {"t": {"n": 0.5}}}, False),
        ({"r": {"t": {"m": 0.5}}}, {"r": {"t": {"m": 0.5000000000000001}}}, False),
        ({"r": {"t": {"m": 10**400}}}, {"r": {"t": {"m": float("inf")}}}, True),
    ],
)
def test_digests_of_results(digest, other, same):
    assert (results_digest(digest) == results_digest(other)) == same


@pytest.mark.parametrize("results", [None, [], {}, {"r": 1}, {"r": {"t": {"m": True}}}])
def test_results_without_scores_have_no_digest(results):
    assert results_digest(results) is None


@pytest.mark.parametrize(
    "model_id", ["DNABERT-2", "dnabert_2", "dnabert.2", "dnaBERT--2", "dnabert-_.2"]
)
def test_ids_of_one_normal_form(model_id):
    assert normal_model_id(model_id) == "dnabert-2"


def test_counts():
    assert [plural(n, "cell") for n in (0, 1, 2, 2000)] == [
        "0 cells",
        "1 cell",
        "2 cells",
        "2,000 cells",
    ]


def test_files_are_listed_once_and_in_order(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text("[]", encoding="utf-8")
    again = tmp_path / "a.json"
    assert files_of([again, tmp_path, again]) == [again, tmp_path / "b.json"]
    assert Path(files_of([tmp_path])[0]).name == "a.json"


def test_names_are_refused_by_their_length_before_they_are_mapped(
    findings_of, tmp_path, monkeypatch
):
    """U+FDFA becomes 18 characters: 780 kB of it took half a minute and 480 MB."""
    mapped: list[int] = []
    real = unicodedata.normalize

    def counted(form: Any, text: str) -> str:
        mapped.append(len(text))
        return real(form, text)

    monkeypatch.setattr(unicodedata, "normalize", counted)
    findings_of(small("row"))
    other, long = small("other"), "\ufdfa" * 20_000
    other["model_id"] = other["meta"]["display"] = long
    path = tmp_path / "other.json"
    path.write_text(json.dumps(other, ensure_ascii=False), encoding="utf-8")
    results = list(Checker(RULES).run([tmp_path / "row.json", path]))
    rules = {
        f.rule for result in results if isinstance(result, FileResult) for f in result.findings
    }
    assert {"bad-model-id", "wrong-length"} <= rules
    assert mapped
    assert max(mapped) <= 50 * names.NAME_LENGTH_MAX, "a name of 20,000 letters was mapped"


MINI_FILE = ROOT / "schemas/benchmark-mini.json"
SOLVED = {"MCC": 1.0, "Acc": 1.0, "F1": 1.0}


def test_a_row_that_solves_tasks_is_neither_rounded_nor_made_up(tmp_path):
    benchmark = load_benchmark(MINI_FILE)
    document = small_v11("model", benchmark)
    tasks = list(benchmark.task_ids)
    for regime, solved in (("full", tasks[: len(tasks) // 2]), ("10shot", tasks[:1])):
        for number, task in enumerate(tasks):
            part = (number + 0.5) / len(tasks) / 3
            scores = SOLVED if task in solved else {"MCC": part, "Acc": 0.9, "F1": part + 0.1 / 3}
            document["results"][regime][task] = scores
            cell = document["evidence"][regime][task]
            cell["per_seed"] = {name: [value] * 5 for name, value in scores.items()}
            text = task if task in solved else f"{regime} {task}"
            cell["predictions_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    shutil.copy(MINI_FILE, tmp_path)
    table = f'[tool.geneb-ci]\nbenchmark = "{MINI_FILE.name}"\nsubmissions = "none"\n'
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    findings = Checker(RULES, check_structure).check(path).findings
    about = {f.rule for f in findings if "1shot" not in f.pointer}
    assert "impossible-scores" in about  # the rules looked at the other cells
    assert not about & {"repeated-digest", "rounded-scores", "round-numbers"}


def test_scores_of_zero_and_one_tell_no_number_of_decimals():
    cells = [{"MCC": number / 77, "F1": number / 83} for number in range(1, 60)]
    assert rounding_of([*cells, *[{"MCC": 1.0, "F1": 1.0}] * 20]) is None
    assert rounding_of([*cells, *[{"MCC": 0.5, "F1": 0.25}] * 20]) is not None


def renamed(members: dict[str, Any], old: str, new: str) -> None:
    members[new] = members.pop(old)


@pytest.fixture(params=[check_structure, check_by_schema], ids=["models", "schema"])
def fixes(request, tmp_path) -> Callable[[Any], list[tuple[str, str]]]:
    """Return a maker of the fixes of what is missing, by either engine, for the small benchmark."""

    def check(document: Any) -> list[tuple[str, str]]:
        (tmp_path / "row.json").write_text(json.dumps(document), encoding="utf-8")
        (tmp_path / "small.json").write_bytes(BENCHMARK_FILE.read_bytes())
        table = '[tool.geneb-ci]\nbenchmark = "small.json"\nsubmissions = "none"\n'
        (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
        findings = Checker(RULES, request.param).check(tmp_path / "row.json").findings
        return [(f.rule, f.fix) for f in findings if f.rule.startswith("missing-")]

    return check


@pytest.mark.parametrize(
    ("path", "old", "new", "rule"),
    [
        (("results",), "10shot", "10-shot", "missing-regime"),
        (("results", "full"), "promoter_tata", "promoter_tatta", "missing-task"),
        (("meta",), "training_data", "training_dta", "missing-field"),
        (("results", "full", "promoter_tata"), "MCC", "MMCC", "missing-metric"),
    ],
)
def test_a_misspelt_name_is_the_fix_of_what_is_missing(fixes, path, old, new, rule):
    document = small("row")
    renamed(member_at(document, *path), old, new)
    assert fixes(document) == [(rule, f'Rename "{new}" to "{old}", if that is meant.')]


def test_what_no_name_misspells_is_fixed_as_ever(fixes):
    document = small("row")
    for task in ("promoter_tata", "splice_sites"):
        renamed(document["results"]["full"], task, f"{task[:-1]}" if task < "s" else "x" * 30)
    ((_, fix),) = fixes(document)
    assert fix.startswith('Rename "promoter_tat" to "promoter_tata", if that is meant. Run the ')


def test_a_task_that_is_there_is_not_suggested(findings_of):
    document = small("row")
    first, second = document["results"]["full"], document["results"]["1shot"]
    first["promoter_tate"] = first["promoter_tata"]
    renamed(second, "splice_sites", "promoter_tate")
    said_of = {
        pointer: message for rule, pointer, message in findings_of(document) if "unknown" in rule
    }
    assert said_of["/results/full/promoter_tate"].endswith('; "promoter_tata" exists already')
    assert "did you mean" not in said_of["/results/1shot/promoter_tate"]


@pytest.mark.parametrize(
    ("metrics", "where"),
    [(("MCC", "Acc", "F1"), 'all scores of "10shot"'), (("Acc",), 'Acc of "10shot"')],
)
def test_one_regime_in_percent_is_one_finding(findings_of, metrics, where):
    document = small("row")
    for scores in document["results"]["10shot"].values():
        scores.update({metric: scores[metric] * 100 for metric in metrics})
    ((rule, pointer, message),) = findings_of(document)
    assert (rule, pointer) == ("percent-scores", "/results/10shot")
    assert message.startswith(f"{where} are in percent: the first cell has ")


def test_one_score_in_percent_is_fixed_by_a_hundredth():
    document = small("row")
    document["results"]["full"]["promoter_tata"]["MCC"] = 79.37
    _, (fault,) = check_structure(document)
    assert "divide by 100: 0.7937." in fault.fix
    document["results"]["full"]["promoter_tata"]["MCC"] = 100.5
    _, (fault,) = check_structure(document)
    assert fault.fix == "", "no score in percent is above 100"


@pytest.mark.parametrize(
    ("path", "value", "message", "fix"),
    [
        (
            ("meta", "params"),
            19.7,
            "params is 19.7, a number",
            "Write the number of parameters; 19.7 million are 19700000.",
        ),
        (
            ("meta", "zero_shot"),
            "yes",
            'zero_shot is "yes", a string',
            "Write true or false, without quotes.",
        ),
        (("meta", "url"), 3, "url is 3, a number", "Write a string."),
        (
            ("results", "full", "promoter_tata", "Acc"),
            None,
            "Acc is null",
            _NULL_FIX,
        ),
    ],
)
def test_a_wrong_type_is_fixed_by_what_it_is(path, value, message, fix):
    document = small("row")
    member_at(document, *path[:-1])[path[-1]] = value
    _, (fault,) = check_structure(document)
    assert (fault.message, fix) == (message, fault.fix)


def test_a_time_is_expected_as_an_example():
    document = small_v11("row")
    document["run"]["started_at"] = "yesterday"
    _, (fault,) = check_structure(document)
    assert fault.expected == "a time in UTC, such as 2026-11-28T13:47:00Z"


def test_a_repeated_key_is_fixed_by_its_first_place():
    text = '{"a": 7,\n "b": {"c": 1,\n"c": [2]}, "a": 8, "b": 1}'
    assert [fault.fix for fault in scan(text).faults] == [
        "Delete one of the two; the first is 1, on line 2.",
        "Delete one of the two; the first is 7, on line 1.",
        "Delete one of the two; the first is on line 2.",
    ]


def test_a_byte_order_mark_makes_no_row_another_one(tmp_path):
    text = json.dumps(small("row"))
    marked, plain = tmp_path / "marked.json", tmp_path / "plain.json"
    marked.write_text(text, encoding="utf-8-sig")
    plain.write_text(text, encoding="utf-8")
    first, second = (read_row(path, {}, keep_scores=True) for path in (marked, plain))
    assert first.model_id == "row"
    assert first[1:4] == second[1:4]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.19, 0.2221, "about 0.190 to 0.222"),
        (0.38012, 0.38017, "about 0.3801 to 0.3802"),
        (0.25, 0.25, "about 0.25000000"),
    ],
)
def test_ends_of_an_interval_differ(low, high, text):
    assert interval_text(low, high) == text


@pytest.mark.parametrize(
    ("scores", "rules", "text"),
    [
        ({"MCC": 0.9, "Acc": 0.55, "F1": 0.7}, {"accuracy-off-grid", "impossible-scores"}, ""),
        ({"Acc": 0.9501}, {"accuracy-off-grid"}, ""),
        (
            {"MCC": 0.8},
            {"impossible-scores"},
            "the matrix that accuracy and F1 fit gives MCC 0.9003,",
        ),
    ],
)
def test_each_contradiction_of_a_cell_is_found_with_one_answer(tmp_path, scores, rules, text):
    document = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_bytes())
    task = "InstaDeepAI_nucleotide_transformer_downstream_tasks_promoter_tata"
    document["results"]["full"][task] |= scores
    (tmp_path / "row.json").write_text(json.dumps(document), encoding="utf-8")
    findings = Checker(select(["arithmetic"], [])).check(tmp_path / "row.json").findings
    assert {finding.rule for finding in findings} == rules
    assert text in findings[0].message


def test_a_count_in_millions_is_told(findings_of):
    document = small_v11("row")
    document["meta"]["params"] = 86
    messages = [
        message for rule, _, message in findings_of(document) if rule == "size-against-width"
    ]
    assert [message.rpartition("; ")[2] for message in messages] == ["did you mean 86 million?"]


@pytest.mark.parametrize("rich", ["full", "10shot"])
def test_swapped_regimes_are_told(tmp_path, rich):
    document = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_bytes())
    results = document["results"]
    results[rich], results["1shot"] = results["1shot"], results[rich]
    (tmp_path / "row.json").write_text(json.dumps(document), encoding="utf-8")
    findings = Checker(select(["regimes-out-of-order"], [])).check(tmp_path / "row.json").findings
    message = f'The scores of "1shot" and "{rich}" seem to be swapped'
    assert [finding.fix.partition(":")[0] for finding in findings][-1] == message
