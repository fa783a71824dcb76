"""Does size pay: Spearman's rho of parameter counts and scores."""

import warnings

import pandas as pd
from scipy.stats import ConstantInputWarning, spearmanr

from geneb_ci.build.diagnostics import shape
from geneb_ci.build.diagnostics.frame import Frames, rounded

MODELS_MIN = 3
"""Two points always lie on a line."""
P_DIGITS = 3
"""Significant digits: p runs over many orders of magnitude."""


def scale(frames: Frames) -> dict[str, shape.ScaleByCounts]:
    """Correlate in every regime, with the counts of the board and with those of the paper."""
    found = {}
    for regime, scores in frames.scores.items():
        sources = {name: _counts(frames, name) for name in ("params", "paper")}
        board, paper = (_scale(counts, scores) for counts in sources.values())
        found[regime] = shape.ScaleByCounts(board=board, paper=paper)
    return found


def _counts(frames: Frames, name: str) -> pd.Series:
    """Give the counts of the models that have any: a method without parameters has no size."""
    counts = frames.models[name].astype(float)
    return counts[counts > 0]


def _scale(counts: pd.Series, scores: pd.DataFrame) -> shape.Scale:
    found = {name: correlation(counts, scores[name]) for name in scores.columns}
    macro, micro = found.pop("macro"), found.pop("micro")
    return shape.Scale(macro=macro, micro=micro, categories=found)


def correlation(counts: pd.Series, scores: pd.Series) -> shape.Correlation:
    """Give Spearman's rho of the models that both have; equal counts share their mean rank."""
    sizes, values = counts.align(scores, join="inner")
    if len(sizes) < MODELS_MIN:
        return shape.Correlation(models=len(sizes), rho=None, p=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        found = spearmanr(sizes, values)
    if pd.isna(found.statistic):
        return shape.Correlation(models=len(sizes), rho=None, p=None)
    p = float(f"{found.pvalue:.{P_DIGITS}g}")
    return shape.Correlation(models=len(sizes), rho=rounded(found.statistic), p=p)
