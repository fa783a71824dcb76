"""GENEB-mini: 13 synthetic tasks, one per category, generated from a seed; the default benchmark.

The classes of a task differ in a signal: a composition, a motif, a period, or the order of two
motifs. Word counts show the first three and not the last, so a k-mer probe finds most signals, and
a model that reads order can score higher. The scores mean nothing for biology: the tasks show that
an extractor, the harness and a submission work together, within seconds and without a download.
"""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .data.benchmark import geneb, new_definition
from .data.task_data import REVISION_EXPLANATION, Split, TaskData, content_revision, task_definition

SEED = 2026
"""Seed of all tasks; another seed would make another benchmark with another digest."""

REPO_ID = "builtin:geneb-mini"
"""Stands in records for the repository of the task data, as the tasks are generated."""
RANDOM_LABEL_SHARE = 0.08
"""Share of random labels, so that no method reaches MCC 1 and ties are rare."""

Letters = npt.NDArray[np.uint8]
"""The letters of a sequence, as ASCII codes."""
SignalWriter = Callable[[np.random.RandomState, Letters, int], None]
"""Function that changes the letters of a sequence so that its class, the last argument, can be
seen."""
_ALPHABET = np.frombuffer(b"ACGT", dtype=np.uint8)
"""The letters A, C, G, T, as ASCII codes."""


@dataclass(frozen=True)
class MiniTask:
    """The parameters from which one task is generated."""

    id: str
    label: str
    """Name of the task on the board."""
    category: str
    """Name of the category of the board."""
    write_signal: SignalWriter
    """Writes into a sequence what distinguishes its class."""
    classes: int = 2
    """Number of classes."""
    length: tuple[int, int] = (80, 160)
    """Letters of the shortest and of the longest possible sequence."""
    n_train: int = 360
    """Number of training sequences."""
    n_test: int = 160
    """Number of test sequences."""


def _write_word(letters: Letters, word: str, position: int) -> None:
    """Replace the letters from a position on by a word."""
    letters[position : position + len(word)] = np.frombuffer(word.encode(), dtype=np.uint8)


def _random_position(rng: np.random.RandomState, low: int, high: int) -> int:
    """Return a random integer from `low` to `high - 1`."""
    return low + int(rng.random_sample() * (high - low))


def gc_content(*strengths: float) -> SignalWriter:
    """Return a function that redraws a share `strengths[c]` of class c's letters as G or C."""

    def write_signal(rng: np.random.RandomState, letters: Letters, label: int) -> None:
        redrawn = rng.random_sample(len(letters)) < strengths[label]
        strong_letters = _ALPHABET[1 + (rng.random_sample(len(letters)) < 0.5)]  # noqa: PLR2004 - C or G
        letters[redrawn] = strong_letters[redrawn]

    return write_signal


def motif(*words: str, copies: int = 1, chance: float = 0.9) -> SignalWriter:
    """Return a function that writes the word of a class up to `copies` times."""

    def write_signal(rng: np.random.RandomState, letters: Letters, label: int) -> None:
        for _ in range(copies):
            position = _random_position(rng, 0, len(letters) - len(words[label]))
            if rng.random_sample() < chance:
                _write_word(letters, words[label], position)

    return write_signal


def periodic_letter(period: int, letter: str, chance: float) -> SignalWriter:
    """Return a function that writes `letter` into sequences of class 1, with a period.

    Every `period`-th letter, from a random one on, is replaced with probability `chance`.
    """

    def write_signal(rng: np.random.RandomState, letters: Letters, label: int) -> None:
        phase = _random_position(rng, 0, period)
        is_written = rng.random_sample(len(letters)) < chance
        is_in_phase = np.arange(len(letters)) % period == phase
        if label:
            letters[is_in_phase & is_written] = ord(letter)

    return write_signal


def word_order(first_word: str, second_word: str) -> SignalWriter:
    """Return a function that writes two words; class 1 has the first word first."""

    def write_signal(rng: np.random.RandomState, letters: Letters, label: int) -> None:
        words = (first_word, second_word) if label else (second_word, first_word)
        middle = len(letters) // 2
        for word, low, high in zip(words, (0, middle), (middle, len(letters)), strict=True):
            _write_word(letters, word, _random_position(rng, low, high - len(word)))

    return write_signal


def lost_cpg(chance: float) -> SignalWriter:
    """Return a function that changes each CG of class 1 to TG with probability `chance`.

    This is a frequent mutation of methylated DNA.
    """

    def write_signal(rng: np.random.RandomState, letters: Letters, label: int) -> None:
        sites = np.flatnonzero((letters[:-1] == ord("C")) & (letters[1:] == ord("G")))
        changed_sites = sites[rng.random_sample(len(sites)) < chance]
        if label:
            letters[changed_sites] = ord("T")

    return write_signal


def all_signals(*writers: SignalWriter) -> SignalWriter:
    """Return a function that writes the signals of several such functions, in order."""

    def write_signal(rng: np.random.RandomState, letters: Letters, label: int) -> None:
        for writer in writers:
            writer(rng, letters, label)

    return write_signal


TASKS = (
    MiniTask("mini_histone", "Histone, GC", "Histone Mod.", gc_content(0.0, 0.18)),
    MiniTask("mini_promoter", "TATA box", "Promoters", motif("GCAGCC", "TATAAA", copies=2)),
    MiniTask("mini_enhancer", "Three grades of GC", "Enhancers", gc_content(0.0, 0.15, 0.3), 3),
    MiniTask("mini_methylation", "CpG loss", "DNA Methyl.", lost_cpg(0.7), length=(120, 200)),
    MiniTask("mini_splice", "Donor, acceptor, none", "Splice Sites",
             motif("CAGGTAAGT", "TTTTTTCAGG", "ACGATCATG"), 3, (60, 60)),
    MiniTask("mini_lncrna", "Weak repeat", "lncRNA", motif("AATAAT", "GGCGGC"), length=(200, 400)),
    MiniTask("mini_mouse", "Two motifs", "Mouse Enh.",
             all_signals(gc_content(0.0, 0.06), motif("TGACTCA", "CACGTG", chance=0.6)),
             length=(101, 101)),
    MiniTask("mini_tf", "Motif order", "TF Binding", word_order("TGACGTCA", "GGGCGGGG"),
             length=(101, 101)),
    MiniTask("mini_species", "Four species", "Species Clf.",
             all_signals(gc_content(0, 0, 0.15, 0.15),
                         motif("AAGCTT", "GAATTC", "AAGCTT", "GAATTC", copies=2)), 4, (60, 300)),
    MiniTask("mini_regulatory", "Rhythm of ten", "Regulatory", periodic_letter(10, "A", 0.8)),
    MiniTask("mini_phage", "Virus or phage", "Virus/Phage",
             all_signals(gc_content(0.0, 0.1), motif("GATC", "CTAG", copies=2)), length=(60, 500)),
    MiniTask("mini_coding", "Rhythm of three", "Coding/NC", periodic_letter(3, "G", 0.35)),
    MiniTask("mini_chromatin", "Rare motif", "Chromatin Acc.",
             motif("CCGCGAGG", "CCACTAGG", copies=2, chance=0.5)),
)  # fmt: skip
"""The tasks, one per category, with their signals."""


def generate(task: MiniTask, seed: int = SEED) -> TaskData:
    """Return the data of one task; each task has its own random generator.

    Only `RandomState.random_sample` is used, whose stream is fixed by NumPy's policy, so every
    version and platform generates the same letters.
    """
    digest = hashlib.sha256(f"{seed}:{task.id}".encode()).digest()
    rng = np.random.RandomState(int.from_bytes(digest[:4], "big"))
    return TaskData(
        task.id, _generated_split(rng, task, task.n_train), _generated_split(rng, task, task.n_test)
    )


def _generated_split(rng: np.random.RandomState, task: MiniTask, count: int) -> Split:
    """Return `count` random sequences of alternating classes, a few with a random label."""
    sequences, labels = [], []
    for row in range(count):
        label = row % task.classes
        low, high = task.length
        length = _random_position(rng, low, high + 1)
        letters = _ALPHABET[(rng.random_sample(length) * 4).astype(np.int64)]
        task.write_signal(rng, letters, label)
        noise_draw, label_draw = rng.random_sample(2)
        sequences.append(letters.tobytes().decode())
        labels.append(int(label_draw * task.classes) if noise_draw < RANDOM_LABEL_SHARE else label)
    return Split(sequences, np.asarray(labels, dtype=np.int64))


@functools.cache
def load(task_id: str) -> TaskData:
    """Return the data of one task, generated once. Raise KeyError if there is none with that id."""
    return generate({task.id: task for task in TASKS}[task_id])


def definition() -> dict[str, Any]:
    """Return the content of `schemas/benchmark-mini.json`, with GENEB's protocol."""
    data = [load(task.id) for task in TASKS]
    content = new_definition(
        name="GENEB-mini",
        harness_version=geneb().harness_version,
        repo_id=REPO_ID,
        revision=content_revision(data),
        made_by="generated by reference_harness/mini.py",
        category_order=geneb().category_order,
        sources={
            "tasks": f"Synthetic, made by reference_harness/mini.py from the seed {SEED}.",
            "revision": REVISION_EXPLANATION,
        },
        tasks=[
            task_definition(task_data, task.label, task.category)
            for task, task_data in zip(TASKS, data, strict=True)
        ],
    )
    return {"$schema": "./benchmark.schema.json"} | content
