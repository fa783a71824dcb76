"""Benchmark definitions that the whole product can use, and some that it cannot."""

import json
from typing import Any

from tests.small import BENCHMARK_FILE

Values = dict[str, Any]
CATEGORIES = ("Promoters", "Splice Sites")
DATASET = json.loads(BENCHMARK_FILE.read_text("utf-8"))["dataset"]
HOSTILE = (
    *("<script>alert(1)</script>", "</script><b>", "a|b & 'c' \"d\"", "{x} %s \\ `", "=1+1"),
    *("__proto__", "model", "constructor", "F\u00f6rderer", "\u6df1\u5ea6", "a/../c", "W" * 100),
)
"""Names that would break a page, a table, a format or a path, if they were taken as they are."""


def tasks(number: int, categories: tuple[str, ...] = CATEGORIES, **facts: Any) -> list[Values]:
    """Return tasks of two classes, the same number in each category."""
    sized = {"n_test": 500, "test_class_counts": [200, 300], **facts}
    return [
        {
            "id": f"task_{index}",
            "label": f"Task {index}",
            "category": categories[index * len(categories) // number],
            **{key: value for key, value in sized.items() if value is not None},
        }
        for index in range(number)
    ]


def definition(**changes: Any) -> Values:
    """Return a definition of three tasks, with some members replaced; `protocol` is added to."""
    value: Values = json.loads(BENCHMARK_FILE.read_text("utf-8"))
    protocol = value["protocol"] | changes.pop("protocol", {})
    return value | {"tasks": tasks(3), "protocol": protocol} | changes


def shots(*numbers: int, **protocol: Any) -> Values:
    """Return regimes of these numbers of examples a class, beside that of all examples."""
    few = {f"{k}shot": k for k in numbers}
    return {"regimes": ["full", *few], "protocol": {"few_shot_k": few, **protocol}}


def one_task(**facts: Any) -> Values:
    """Return two tasks of which the second has other facts."""
    first, second = tasks(2)
    return {"tasks": [first, second | facts]}


REFUSED: dict[str, tuple[Values, str]] = {
    "a metric more": (
        {"metrics": ["MCC", "Acc", "F1", "Spearman"]},
        'metrics: found ["MCC", "Acc", "F1", "Spearman"]; expected ["MCC", "Acc", "F1"]: a ',
    ),
    "other metrics": (
        {"metrics": ["macroF1", "Spearman"], "primary_metric": "macroF1"},
        'metrics: found ["macroF1", "Spearman"]; expected ["MCC", "Acc", "F1"]',
    ),
    "one metric": ({"metrics": ["MCC"]}, 'metrics: found ["MCC"]; expected ["MCC", "Acc", "F1"]'),
    "another primary metric": (
        {"primary_metric": "Acc"},
        'primary_metric: found "Acc"; expected "MCC": intervals, ranks and advice are computed of ',
    ),
    "no regime of all data": (
        {"regimes": ["10shot", "1shot"]},
        'regimes: found ["10shot", "1shot"]; expected "full" first, each regime once',
    ),
    "full not first": (
        {"regimes": ["1shot", "full"]},
        'regimes: found ["1shot", "full"]; expected "full" first, each regime once',
    ),
    "a regime twice": (
        {"regimes": ["full", "full"]},
        'regimes: found ["full", "full"]; expected "full" first, each regime once',
    ),
    "an unknown regime": (
        {"regimes": ["full", "half"]},
        'regimes/1: found "half"; expected "full", or a number of examples and "shot": "10shot"',
    ),
    "a regime that is a path": (
        {"regimes": ["full", "../x"], "protocol": {"few_shot_k": {"../x": 5}}},
        'found "../x"; expected "full", or a number of examples and "shot"',
    ),
    "a regime that draws nothing": (
        {"regimes": ["full", "7shot"]},
        'regimes: found "7shot"; expected "full" or a name in protocol.few_shot_k: ["1sh',
    ),
    "a regime of another number": (
        {"protocol": {"few_shot_k": {"1shot": 1, "10shot": 5}}},
        'few_shot_k: "10shot" draws 5 of each class; expected the name "5shot"',
    ),
    "all data drawn": (
        {"protocol": {"few_shot_k": {"full": 3, "1shot": 1, "10shot": 10}}},
        'few_shot_k: "full" draws 3 of each class; expected the name "3shot"',
    ),
    "nine regimes": (shots(*range(1, 9)), 'regimes: found ["full", "1shot", '),
    "no seeds": (
        {"protocol": {"seeds": []}},
        "protocol/seeds: found []; List should have at least",
    ),
    "a seed twice": (
        {"protocol": {"seeds": [3, 3]}},
        "protocol/seeds: found [3, 3]; expected no seed twice",
    ),
    "a seed below 0": ({"protocol": {"seeds": [-1]}}, "protocol/seeds/0: found -1; Input should"),
    "a seed of 33 bits": (
        {"protocol": {"seeds": [1 << 32]}},
        "protocol/seeds/0: found 4294967296; Input should be less than or equal to 4294967295",
    ),
    "another probe": (
        {"protocol": {"probe": "ridge"}},
        'protocol/probe: found "ridge"; expected "logistic_regression": no other probe is fitted',
    ),
    "another strength": (
        {"protocol": {"logreg": {"C": 3.0, "max_iter": 1000, "solver": "lbfgs"}}},
        'protocol/logreg: found {"C": 3.0, "max_iter": 1000, "solver": "lbfgs"}; expected {"C"',
    ),
    "scaled features": (
        {"protocol": {"feature_scaling": "standard"}},
        'protocol/feature_scaling: found "standard"; expected null',
    ),
    "another format": ({"schema_version": "2.0"}, 'schema_version: found "2.0"; expected "1.0"'),
    "no name": ({"name": ""}, 'name: found ""; String should have at least 1 character'),
    "a name of two lines": ({"name": "a\nb"}, 'name: found "a\\nb"; expected one line without'),
    "a name that turns": ({"name": "a\u202eb"}, 'name: found "a\\u202eb"; expected one line'),
    "a name of 101 letters": ({"name": "a" * 101}, "String should have at most 100 characters"),
    "no harness": ({"harness_version": ""}, 'harness_version: found ""; String should have at'),
    "an id that is a path": (one_task(id="../x"), 'tasks/1/id: found "../x"; expected letters, '),
    "ids that differ by case": (
        one_task(id="TASK_0"),
        'tasks have ids that look alike: "task_0" and "TASK_0"',
    ),
    "labels that look alike": (
        one_task(label="\uff34ask 0"),
        'tasks have labels that look alike: "Task 0" and "\\uff34ask 0"',
    ),
    "categories that look alike": (
        {"tasks": tasks(2, ("b", "B")), "category_order": ["b", "B"]},
        'category_order has names that look alike: "b" and "B"',
    ),
    "a category twice": (
        {"category_order": [*CATEGORIES, CATEGORIES[0]]},
        'category_order has names that look alike: "Promoters" and "Promoters"',
    ),
    "a category without tasks": (
        {"category_order": [*CATEGORIES, "Enhancers"]},
        'category_order: found ["Promoters", "Splice Sites", "Enhancers"]; expected the',
    ),
    "a category named as a mean": (
        {"tasks": tasks(2, ("Macro", "b")), "category_order": ["Macro", "b"]},
        'category_order: found ["Macro"], the name of a mean; expected other names',
    ),
    "no tasks": ({"tasks": []}, "tasks: found []; List should have at least 1 item"),
    "an empty test split": (
        one_task(n_test=0, test_class_counts=None),
        "tasks/1/n_test: found 0; Input should be greater than or equal to 1",
    ),
    "one class": (
        one_task(n_test=5, test_class_counts=[5]),
        "tasks/1/test_class_counts: found [5]; List should have at least 2 items",
    ),
    "an empty class": (
        one_task(n_test=5, test_class_counts=[0, 5]),
        "tasks/1/test_class_counts/0: found 0; Input should be greater than or equal to 1",
    ),
    "sizes that do not add up": (
        one_task(n_test=5),
        "tasks/1: found test_class_counts [200, 300]; expected ascending numbers",
    ),
    "more rows than a receipt has": (
        one_task(n_test=10_000_001, test_class_counts=None),
        "tasks/1/n_test: found 10000001; Input should be less than or equal to 10000000",
    ),
    "submissions that are too large": (
        {"tasks": tasks(600)},
        "a submission of 600 tasks, 3 regimes and 5 seeds with its confusion matrices has about ",
    ),
    "a branch as revision": (
        {"dataset": DATASET | {"revision": "main"}},
        'dataset/revision: found "main"; expected a commit: 40 digits of 0-9 and a-f',
    ),
    "a key that nobody knows": (
        {"comment": 1},
        "comment: found 1; expected no such key: delete it",
    ),
    "a number as text": (one_task(n_test="500"), 'tasks/1/n_test: found "500"; Input should be a'),
}
"""Changes of a definition that no part of the product may accept, and what `init` says of each."""

ACCEPTED: dict[str, Values] = {
    "one task": {"tasks": tasks(1, CATEGORIES[:1]), "category_order": list(CATEGORIES[:1])},
    "twelve tasks": {"tasks": tasks(12)},
    "fourteen tasks, one category": {
        "tasks": tasks(14, CATEGORIES[:1]),
        "category_order": list(CATEGORIES[:1]),
    },
    "all data alone": {"regimes": ["full"]},
    "five examples, three seeds": {
        **shots(5, seeds=[0, 7, 9]),
    },
    "eight regimes, one seed": {
        **shots(*range(1, 8), seeds=[(1 << 32) - 1]),
    },
    "sizes without classes": {"tasks": tasks(3, test_class_counts=None)},
    "tiny and many classes": {
        "tasks": [
            {**tasks(3)[0], "n_test": 2, "test_class_counts": [1, 1]},
            {**tasks(3)[1], "n_test": 210, "test_class_counts": [7] * 30},
            {**tasks(3)[2], "n_test": 10_000_000, "test_class_counts": [1, 9_999_999]},
        ]
    },
    "hostile names": {
        "name": "<b>{x}%s'\"&|` \\",
        "tasks": [
            task | {"label": f"{name[:90]} L"}
            for task, name in zip(tasks(12, HOSTILE), HOSTILE, strict=True)
        ],
        "category_order": list(HOSTILE),
        "sources": {"<i>": "<i>"},
        "dataset": DATASET | {"repo_id": "local:a b<c>", "remote_layout": "<script>/<task_id>"},
    },
}
"""Changes of a definition that every command takes."""
UNSIZED: Values = {"tasks": tasks(3, n_test=None, test_class_counts=None)}
"""A definition that every command takes but those that need intervals, which say so."""
