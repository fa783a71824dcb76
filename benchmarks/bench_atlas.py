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
CUT_LETTERS = 32
"""Sequences lose 0 to 31 letters at their end, one after another."""
DTYPES = ("float32", "bfloat16")
DEVICES = ("cpu", "cuda", "mps")
ATLAS_NOTE = (
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
        differences = [
            f"{key} {value}"
            for key, value in self._asdict().items()
            if value != getattr(base, key) and key != "device"
        ]
        return ", ".join(differences) or "again"


MKL_KERNELS = {"default": None, "avx2": "AVX2", "sse": "SSE4_2"}
"""By a name for the kernels: the limit for MKL, and in the next table the limit for torch, whose
own name for its lowest kernels is "default"."""
TORCH_KERNELS = {"default": None, "avx2": "avx2", "sse": "default"}
OPENBLAS_KERNELS = ("Haswell", "SkylakeX", "Sandybridge", "Nehalem")
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


def write_embeddings(conditions_and_files: list[list[Any]], folder: Path) -> None:
    """Embed under each condition, and write the embeddings to its file."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from reference_harness.loading.loader import load

    for *settings, output in conditions_and_files:
        condition = Condition(*settings)
        torch.set_num_threads(condition.threads)
        mode, budget = condition.batches.split()
        extractor: Any = load(
            "huggingface", str(folder), condition.device,
            batching=mode, token_budget=int(budget), dtype=condition.dtype,
            compile=condition.compiled == "yes",
        ).extractor  # fmt: skip
        implementation, *kernel = condition.attention.split()
        if condition.compiled == "no":  # else it was compiled with sdpa, the model's own
            extractor.model.set_attn_implementation(implementation)
        embeddings = {}
        for task, sequences in sequences_of().items():
            with sdpa_kernel([SDPBackend.MATH]) if kernel else contextlib.nullcontext():
                embeddings[task] = extractor.extract_embeddings(sequences)
        np.savez(output, **embeddings)


def sequences_of() -> dict[str, list[str]]:
    """Return the sequences of each task, train, then test: of mixed lengths, as padding needs."""
    from reference_harness import mini

    tasks = {task: mini.load(task) for task in TASKS}
    return {
        task: [
            sequence[: len(sequence) - number % CUT_LETTERS]
            for number, sequence in enumerate([*data.train.sequences, *data.test.sequences])
        ]
        for task, data in tasks.items()
    }


def write_predictions(files: list[str]) -> None:
    """Fit the probe of record; write the predictions of the test rows."""
    from reference_harness import mini
    from reference_harness.probe import logistic

    for name in files:
        embeddings, predictions = np.load(name), {}
        for task in TASKS:
            data = mini.load(task)
            train_count = len(data.train.labels)
            train, test = embeddings[task][:train_count], embeddings[task][train_count:]
            predictions[f"record {task}"] = logistic.fit(train, data.train.labels, test).predictions
        np.savez(Path(name).with_suffix(".scores.npz"), allow_pickle=False, **predictions)


def run_with_kernels(kernels: str, blas: str, *words: str) -> None:
    """Run this file in a process with these kernels of torch and MKL, and of OpenBLAS."""
    variables = {
        "ATEN_CPU_CAPABILITY": TORCH_KERNELS[kernels],
        "MKL_ENABLE_INSTRUCTIONS": MKL_KERNELS[kernels],
        "OPENBLAS_CORETYPE": blas,
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment = {k: v for k, v in os.environ.items() if k not in variables}
    environment |= {key: value for key, value in variables.items() if value is not None}
    subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_atlas", *words],
        cwd=ROOT, env=environment, check=True,
    )  # fmt: skip


def embedding_differences(first_file: Path, second_file: Path) -> tuple[int, float, float]:
    """Return the number of embeddings that differ, and their largest and mean relative distance."""
    first, second = np.load(first_file), np.load(second_file)
    distances_by_task = []
    for task in TASKS:
        first_rows, second_rows = first[task].astype(float), second[task].astype(float)
        distances_by_task.append(
            np.linalg.norm(first_rows - second_rows, axis=1) / np.linalg.norm(first_rows, axis=1)
        )
    distances = np.concatenate(distances_by_task)
    return int((distances > 0).sum()), float(distances.max()), float(distances.mean())


def score_differences(first_file: Path, second_file: Path, protocol: str) -> tuple[int, float]:
    """Return the number of predictions that differ, and the largest difference of a task's MCC."""
    from sklearn.metrics import matthews_corrcoef

    from reference_harness import mini

    first, second = np.load(first_file), np.load(second_file)
    flips, largest = 0, 0.0
    for task in TASKS:
        first_predictions, second_predictions = (
            first[f"{protocol} {task}"],
            second[f"{protocol} {task}"],
        )
        truth = mini.load(task).test.labels
        flips += int((first_predictions != second_predictions).sum())
        largest = max(
            largest,
            abs(
                matthews_corrcoef(truth, first_predictions)
                - matthews_corrcoef(truth, second_predictions)
            ),
        )
    return flips, float(largest)


def entry(
    claimed: str, rerun: str, dtype: str, difference: str, first_file: Path, second_file: Path
) -> dict[str, Any]:
    """Return the differences of embeddings and scores between two conditions."""
    rows, largest, average = embedding_differences(first_file, second_file)
    flips, mcc = score_differences(
        first_file.with_suffix(".scores.npz"), second_file.with_suffix(".scores.npz"), "record"
    )
    return {
        "claimed": claimed, "rerun": rerun, "dtype": dtype, "differ_in": difference,
        "rows_changed": rows, "row_max": _three_digits(largest), "row_mean": _three_digits(average),
        "record_flips": flips, "record_mcc": _three_digits(mcc),
    }  # fmt: skip


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def device_entries(scratch: Path, device: str, *, only_first: bool = False) -> list[dict[str, Any]]:
    """Return the entries of one device, and write its embeddings and scores to files.

    With `only_first`, only the files of the first condition are written, for `between_devices`.
    """
    from tests.harness.extractors.models import save

    model = scratch / "model"
    if not model.exists():
        save("bert", model)
    condition_files = {
        (dtype, number): (condition, scratch / f"{device}-{dtype}-{number}.npz")
        for dtype in DTYPES
        for number, condition in enumerate(conditions(device, dtype)[: 1 if only_first else None])
    }
    for kernels, is_again in itertools.product(TORCH_KERNELS, (False, True)):
        # "again" is a process of its own, as every other set of kernels is.
        conditions_and_files = [
            [*condition, str(file)]
            for (_, number), (condition, file) in condition_files.items()
            if condition.kernels == kernels and (number == 1) == is_again
        ]
        if conditions_and_files:
            argument = json.dumps(conditions_and_files)
            run_with_kernels(kernels, OPENBLAS_KERNELS[0], "--embed", argument, str(model))
    files = [str(file) for _, file in condition_files.values()]
    run_with_kernels("default", OPENBLAS_KERNELS[0], "--score", json.dumps(files))
    if only_first:
        return []
    entries: list[dict[str, Any]] = []
    bases = {dtype: condition_files[dtype, 0] for dtype in DTYPES}
    for (dtype, number), (condition, file) in condition_files.items():
        if number:
            base, first = bases[dtype]
            entries.append(entry(device, device, dtype, condition.name(base), first, file))
    for blas in OPENBLAS_KERNELS[1:]:
        copies = {dtype: scratch / f"{device}-{dtype}-{blas}.npz" for dtype in DTYPES}
        for dtype, copy in copies.items():
            copy.write_bytes(bases[dtype][1].read_bytes())
        run_with_kernels("default", blas, "--score", json.dumps([*map(str, copies.values())]))
        entries += [
            entry(device, device, dtype, f"probe on {blas}", bases[dtype][1], copy)
            for dtype, copy in copies.items()
        ]
    for first_dtype, second_dtype in itertools.pairwise(DTYPES):
        difference = f"{first_dtype} against {second_dtype}"
        entries.append(
            entry(
                device,
                device,
                second_dtype,
                difference,
                bases[first_dtype][1],
                bases[second_dtype][1],
            )
        )
    return entries


def available_devices() -> list[str]:
    """Return the types of device that torch finds on this machine."""
    import torch

    is_available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    return [device for device in DEVICES if is_available[device]]


def between_devices(scratch: Path, available: list[str]) -> list[dict[str, Any]]:
    """Return the entries of pairs of devices; unmeasured ones for devices not `available`."""
    entries = []
    for dtype, (first_device, second_device) in itertools.product(
        DTYPES, itertools.combinations(DEVICES, 2)
    ):
        files = [scratch / f"{device}-{dtype}-0.npz" for device in (first_device, second_device)]
        if first_device in available and second_device in available:
            entries.append(entry(first_device, second_device, dtype, "device", *files))
        else:
            entries.append(_unmeasured(first_device, second_device, dtype))
    absent_devices = [device for device in DEVICES if device not in available]
    return entries + [
        _unmeasured(device, device, dtype) for device in absent_devices for dtype in DTYPES
    ]


def _unmeasured(first_device: str, second_device: str, dtype: str) -> dict[str, Any]:
    names = (
        "rows_changed", "row_max", "row_mean", "record_flips", "record_mcc",
    )  # fmt: skip
    return {
        "claimed": first_device,
        "rerun": second_device,
        "dtype": dtype,
        "differ_in": "",
    } | dict.fromkeys(names)


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the new entries, and the old ones of devices that this machine lacks."""
    new_pairs = {_pair(entry) for entry in new if entry["row_max"] is not None}
    old_entries = [
        entry for entry in old if entry["row_max"] is not None and _pair(entry) not in new_pairs
    ]
    measured_pairs = new_pairs | {_pair(entry) for entry in old_entries}
    new_entries = [
        entry for entry in new if entry["row_max"] is not None or _pair(entry) not in measured_pairs
    ]
    return [*new_entries, *old_entries]


def _pair(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["claimed"], entry["rerun"], entry["dtype"]


def table(atlas: dict[str, Any]) -> str:
    """Return the entries as a table: a row for each difference, a column for each dtype."""
    cells: dict[str, dict[str, str]] = {}
    missing: list[str] = []
    machines: dict[str, list[str]] = {}
    for entry in atlas["entries"]:
        pair = f"{entry['claimed']}, {entry['rerun']}"
        if entry["row_max"] is None:
            missing.append(f"{pair} in {entry['dtype']}")
            continue
        differences = (
            f"{entry['rows_changed']}; {entry['row_max']:.1e}; "
            f"{entry['record_flips']}, {entry['record_mcc']:.4f}"
        )
        machines.setdefault(entry["machine"], []).append(pair)
        row = entry["differ_in"] if pair == "cpu, cpu" else f"{entry['differ_in']} ({pair})"
        cells.setdefault(row, {})[entry["dtype"]] = differences
    dtypes = list(dict.fromkeys(dtype for row in cells.values() for dtype in row))
    lines = [
        f"| differ in | {' | '.join(dtypes)} |",
        f"|---|{'---:|' * len(dtypes)}",
        *(
            f"| {row} | {' | '.join(row_cells.get(dtype, '') for dtype in dtypes)} |"
            for row, row_cells in cells.items()
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
        write_embeddings(json.loads(options.embed[0]), Path(options.embed[1]))
        return
    if options.score:
        write_predictions(json.loads(options.score))
        return
    from reference_harness import environment, mini

    available = available_devices()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "torch"))
    machine = ", ".join(
        [*map(environment.hardware, available), f"Python {platform.python_version()}"]
    )
    machine += f", {packages}"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        new_entries = [
            entry
            for device in available
            for entry in device_entries(
                scratch, device, only_first=options.device not in {None, device}
            )
        ]
        new_entries += between_devices(scratch, available)
    for entry in new_entries:
        entry["machine"] = machine if entry["row_max"] is not None else None
    old_entries = json.loads(ATLAS.read_bytes())["entries"] if ATLAS.is_file() else []
    atlas: dict[str, Any] = {
        "schema_version": "1.0",
        "note": ATLAS_NOTE,
        "model": "a small BERT with random weights",
        "rows": sum(map(len, sequences_of().values())),
        "test_rows": sum(len(mini.load(task).test.labels) for task in TASKS),
        "entries": merged(old_entries, new_entries),
    }
    text = table(atlas)
    print(text)
    if options.write:
        entries = ",\n".join(f"  {json.dumps(entry)}" for entry in atlas.pop("entries"))
        head = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in atlas.items())
        ATLAS.write_text(f'{{\n{head} "entries": [\n{entries}\n ]\n}}\n', encoding="utf-8")
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
