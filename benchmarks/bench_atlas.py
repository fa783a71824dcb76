"""Measure how embeddings and scores differ between devices, dtypes, kernels and batches.

    python -m benchmarks.bench_atlas --write  # schemas/atlas.json, docs/research/tolerance.md

Each set of kernels is measured in its own process, whose environment chooses them. An entry
compares a condition with the first one of its device and dtype, or two dtypes. Pairs of devices
that this machine lacks are written as not measured; pairs that it has replace earlier entries.
`audit` takes pairs that were not measured to be far apart.
"""

import argparse
import contextlib
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.paths import ROOT

ATLAS = ROOT / "schemas/atlas.json"
PAGE = ROOT / "docs/research/tolerance.md"
BEGIN, END = "<!-- atlas -->\n", "<!-- /atlas -->"
TASKS = ("mini_tf", "mini_promoter", "mini_splice")
CUT = 32
"""Sequences lose 0 to 31 letters at their end, one after another."""
DTYPES = ("float32", "bfloat16")
DEVICES = ("cpu", "cuda", "mps")
NOTE = (
    "How far rows of embeddings and scores were measured to lie apart between conditions. Written "
    "by `make bench-atlas`; null was not measured."
)


class Condition(NamedTuple):
    """The settings under which embeddings are computed."""

    device: str
    dtype: str
    kernels: str = "default"
    """ATEN_CPU_CAPABILITY, with the same limit for MKL."""
    attention: str = "sdpa"
    batches: str = "budget 2048"
    threads: int = 1
    compiled: str = "no"

    def name(self, base: "Condition") -> str:
        """Return in words how the condition differs from another one."""
        differ = [
            f"{key} {value}"
            for key, value in self._asdict().items()
            if value != getattr(base, key) and key != "device"
        ]
        return ", ".join(differ) or "again"


MKL = {"default": None, "avx2": "AVX2", "sse": "SSE4_2"}
"""Limits for MKL beside those of torch, whose lowest is called "default" by torch itself."""
TORCH = {"default": None, "avx2": "avx2", "sse": "default"}
OPENBLAS = ("Haswell", "SkylakeX", "Sandybridge", "Nehalem")
"""Kernels of the probe; a processor without AVX-512 runs SkylakeX's as Haswell's."""


def conditions(device: str, dtype: str) -> list[Condition]:
    """Return the first condition, and those that differ from it in one setting."""
    base = Condition(device, dtype)
    others = [
        base,  # again: what a process of its own changes
        base._replace(attention="eager"),
        base._replace(attention="sdpa math"),
        base._replace(batches="budget 8192"),
        base._replace(batches="exact 2048"),
        base._replace(batches="file 2048"),
        base._replace(compiled="yes"),
    ]
    if device == "cpu":
        others += [base._replace(kernels="avx2"), base._replace(kernels="sse")]
        others.append(base._replace(threads=2))
    return [base, *others]


def embed(todo: list[list[Any]], folder: Path) -> None:
    """Embed under each condition that this process's environment allows, and write files."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from reference_harness.loading import load

    for *words, output in todo:
        condition = Condition(*words)
        torch.set_num_threads(condition.threads)
        mode, budget = condition.batches.split()
        extractor: Any = load(
            "huggingface", str(folder), condition.device,
            batching=mode, token_budget=int(budget), dtype=condition.dtype,
            compile=condition.compiled == "yes",
        ).extractor  # fmt: skip
        kind, *kernel = condition.attention.split()
        if condition.compiled == "no":  # else it was compiled with sdpa, the model's own
            extractor.model.set_attn_implementation(kind)
        found = {}
        for task, sequences in sequences_of().items():
            with sdpa_kernel([SDPBackend.MATH]) if kernel else contextlib.nullcontext():
                found[task] = extractor.extract_embeddings(sequences)
        np.savez(output, **found)


def sequences_of() -> dict[str, list[str]]:
    """Return the sequences of each task, train, then test: of mixed lengths, as padding needs."""
    from reference_harness import mini

    tasks = {task: mini.load(task) for task in TASKS}
    return {
        task: [
            sequence[: len(sequence) - number % CUT]
            for number, sequence in enumerate([*one.train.sequences, *one.test.sequences])
        ]
        for task, one in tasks.items()
    }


def score(files: list[str]) -> None:
    """Fit the probe of record; write the predictions of the test rows."""
    from reference_harness import mini, probe

    for name in files:
        rows, found = np.load(name), {}
        for task in TASKS:
            data = mini.load(task)
            cut = len(data.train.labels)
            x, test = rows[task][:cut], rows[task][cut:]
            found[f"record {task}"] = probe.fit(x, data.train.labels, test).predictions
        np.savez(Path(name).with_suffix(".scores.npz"), allow_pickle=False, **found)


def child(kernels: str, blas: str, *words: str) -> None:
    """Run a part of this file in a process with these kernels."""
    chosen = {
        "ATEN_CPU_CAPABILITY": TORCH[kernels],
        "MKL_ENABLE_INSTRUCTIONS": MKL[kernels],
        "OPENBLAS_CORETYPE": blas,
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment = {k: v for k, v in os.environ.items() if k not in chosen}
    environment |= {key: value for key, value in chosen.items() if value is not None}
    subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_atlas", *words],
        cwd=ROOT, env=environment, check=True,
    )  # fmt: skip


def rows_apart(one: Path, other: Path) -> tuple[int, float, float]:
    """Return the number of embeddings that differ, and their largest and mean relative distance."""
    first, second = np.load(one), np.load(other)
    shares = []
    for task in TASKS:
        a, b = first[task].astype(float), second[task].astype(float)
        shares.append(np.linalg.norm(a - b, axis=1) / np.linalg.norm(a, axis=1))
    found = np.concatenate(shares)
    return int((found > 0).sum()), float(found.max()), float(found.mean())


def scores_apart(one: Path, other: Path, kind: str) -> tuple[int, float]:
    """Return the number of predictions that differ, and the largest difference of a task's MCC."""
    from sklearn.metrics import matthews_corrcoef

    from reference_harness import mini

    first, second = np.load(one), np.load(other)
    flips, most = 0, 0.0
    for task in TASKS:
        a, b, truth = first[f"{kind} {task}"], second[f"{kind} {task}"], mini.load(task).test.labels
        flips += int((a != b).sum())
        most = max(most, abs(matthews_corrcoef(truth, a) - matthews_corrcoef(truth, b)))
    return flips, float(most)


def entry(
    claimed: str, rerun: str, dtype: str, what: str, one: Path, other: Path
) -> dict[str, Any]:
    """Return the differences of embeddings and scores between two conditions."""
    rows, largest, average = rows_apart(one, other)
    flips, mcc = scores_apart(
        one.with_suffix(".scores.npz"), other.with_suffix(".scores.npz"), "record"
    )
    return {
        "claimed": claimed, "rerun": rerun, "dtype": dtype, "differ_in": what,
        "rows_changed": rows, "row_max": _short(largest), "row_mean": _short(average),
        "record_flips": flips, "record_mcc": _short(mcc),
    }  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def measured(scratch: Path, device: str, *, only_first: bool = False) -> list[dict[str, Any]]:
    """Return the entries of one device; `only_first`: none, but what `between` compares."""
    from tests.harness.extractors.models import save

    model = scratch / "model"
    if not model.exists():
        save("bert", model)
    places = {
        (dtype, number): (one, scratch / f"{device}-{dtype}-{number}.npz")
        for dtype in DTYPES
        for number, one in enumerate(conditions(device, dtype)[: 1 if only_first else None])
    }
    for kernels, is_again in itertools.product(TORCH, (False, True)):
        # "again" is a process of its own, as every other set of kernels is.
        todo = [
            [*one, str(file)]
            for (_, number), (one, file) in places.items()
            if one.kernels == kernels and (number == 1) == is_again
        ]
        if todo:
            child(kernels, OPENBLAS[0], "--embed", json.dumps(todo), str(model))
    files = [str(file) for _, file in places.values()]
    child("default", OPENBLAS[0], "--score", json.dumps(files))
    if only_first:
        return []
    found: list[dict[str, Any]] = []
    bases = {dtype: places[dtype, 0] for dtype in DTYPES}
    for (dtype, number), (condition, file) in places.items():
        if number:
            base, first = bases[dtype]
            found.append(entry(device, device, dtype, condition.name(base), first, file))
    for blas in OPENBLAS[1:]:
        copies = {dtype: scratch / f"{device}-{dtype}-{blas}.npz" for dtype in DTYPES}
        for dtype, copy in copies.items():
            copy.write_bytes(bases[dtype][1].read_bytes())
        child("default", blas, "--score", json.dumps([*map(str, copies.values())]))
        found += [
            entry(device, device, dtype, f"probe on {blas}", bases[dtype][1], copy)
            for dtype, copy in copies.items()
        ]
    for one, other in itertools.pairwise(DTYPES):
        what = f"{one} against {other}"
        found.append(entry(device, device, other, what, bases[one][1], bases[other][1]))
    return found


def devices_here() -> list[str]:
    """Return the kinds of device that torch finds."""
    import torch

    has = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [device for device in DEVICES if has[device]]


def between(scratch: Path, here: list[str]) -> list[dict[str, Any]]:
    """Return the entries of two devices of this machine, and null for the others."""
    found = []
    for dtype, (one, other) in itertools.product(DTYPES, itertools.combinations(DEVICES, 2)):
        files = [scratch / f"{device}-{dtype}-0.npz" for device in (one, other)]
        if one in here and other in here:
            found.append(entry(one, other, dtype, "device", *files))
        else:
            found.append(_unmeasured(one, other, dtype))
    found += [_unmeasured(one, one, t) for one in DEVICES if one not in here for t in DTYPES]
    return found


def _unmeasured(one: str, other: str, dtype: str) -> dict[str, Any]:
    names = (
        "rows_changed", "row_max", "row_mean", "record_flips", "record_mcc",
    )  # fmt: skip
    return {"claimed": one, "rerun": other, "dtype": dtype, "differ_in": ""} | dict.fromkeys(names)


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the new entries, and the old ones of devices that this machine lacks."""
    here = {
        (one["claimed"], one["rerun"], one["dtype"]) for one in new if one["row_max"] is not None
    }
    kept = [
        one
        for one in old
        if one["row_max"] is not None and (one["claimed"], one["rerun"], one["dtype"]) not in here
    ]
    known = here | {(one["claimed"], one["rerun"], one["dtype"]) for one in kept}
    rest = [
        one
        for one in new
        if one["row_max"] is not None or (one["claimed"], one["rerun"], one["dtype"]) not in known
    ]
    return [*rest, *kept]


def table(atlas: dict[str, Any]) -> str:
    """Return the entries as a table: a row for each difference, a column for each dtype."""
    cells: dict[str, dict[str, str]] = {}
    missing: list[str] = []
    machines: dict[str, list[str]] = {}
    for one in atlas["entries"]:
        pair = f"{one['claimed']}, {one['rerun']}"
        if one["row_max"] is None:
            missing.append(f"{pair} in {one['dtype']}")
            continue
        measured = (
            f"{one['rows_changed']}; {one['row_max']:.1e}; "
            f"{one['record_flips']}, {one['record_mcc']:.4f}"
        )
        machines.setdefault(one["machine"], []).append(pair)
        row = one["differ_in"] if pair == "cpu, cpu" else f"{one['differ_in']} ({pair})"
        cells.setdefault(row, {})[one["dtype"]] = measured
    dtypes = list(dict.fromkeys(dtype for row in cells.values() for dtype in row))
    lines = [
        f"| differ in | {' | '.join(dtypes)} |",
        f"|---|{'---:|' * len(dtypes)}",
        *(
            f"| {row} | {' | '.join(found.get(dtype, '') for dtype in dtypes)} |"
            for row, found in cells.items()
        ),
        "",
        *([f"Not measured: {'; '.join(missing)}."] if missing else []),
        (
            f"{atlas['rows']} rows of {len(TASKS)} practice tasks, {atlas['test_rows']} of them "
            f"test rows; {atlas['model']}."
        ),
        *(
            f"{'; '.join(dict.fromkeys(pairs))}: measured on {machine}."
            for machine, pairs in machines.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and with --write keep file and table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--device", choices=DEVICES, help="measure it and its pairs; default: all")
    parser.add_argument("--embed", nargs=2, metavar=("CONDITIONS", "MODEL"))
    parser.add_argument("--score", metavar="FILES")
    options = parser.parse_args()
    if options.embed:
        embed(json.loads(options.embed[0]), Path(options.embed[1]))
        return
    if options.score:
        score(json.loads(options.score))
        return
    from reference_harness import environment, mini

    here = devices_here()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "torch"))
    machine = ", ".join([*map(environment.hardware, here), f"Python {platform.python_version()}"])
    machine += f", {packages}"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        new = [
            one
            for device in here
            for one in measured(scratch, device, only_first=options.device not in {None, device})
        ]
        new += between(scratch, here)
    for one in new:
        one["machine"] = machine if one["row_max"] is not None else None
    old = json.loads(ATLAS.read_bytes())["entries"] if ATLAS.is_file() else []
    atlas: dict[str, Any] = {
        "schema_version": "1.0",
        "note": NOTE,
        "model": "a small BERT with random weights",
        "rows": sum(map(len, sequences_of().values())),
        "test_rows": sum(len(mini.load(task).test.labels) for task in TASKS),
        "entries": merged(old, new),
    }
    text = table(atlas)
    print(text)
    if options.write:
        entries = ",\n".join(f"  {json.dumps(one)}" for one in atlas.pop("entries"))
        head = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in atlas.items())
        ATLAS.write_text(f'{{\n{head} "entries": [\n{entries}\n ]\n}}\n', encoding="utf-8")
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
