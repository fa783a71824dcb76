"""Which files are mutated, by what they decide."""

TARGETS: dict[str, tuple[str, ...]] = {
    "arithmetic": (
        "geneb_ci/statistics/binary.py",
        "geneb_ci/statistics/mean_triples.py",
        "geneb_ci/statistics/metrics.py",
    ),
    "metrics": (
        "reference_harness/canonical.py",
        "reference_harness/metrics.py",
        "reference_harness/noise.py",
    ),
    "board sums": (
        "geneb_ci/board/board.py",
        "geneb_ci/board/rows.py",
        "geneb_ci/board/diff.py",
    ),
    "diagnostics": (
        "geneb_ci/board/diagnostics/whole.py",
        "geneb_ci/board/decisions.py",
        "geneb_ci/board/uncertainty.py",
        "geneb_ci/board/variance.py",
    ),
    "label policy": (
        "geneb_ci/audit/trust_evidence.py",
        "geneb_ci/audit/trust.py",
    ),
    "comparison and tolerance": (
        "geneb_ci/audit/compare.py",
        "geneb_ci/audit/draw.py",
        "geneb_ci/audit/sampling.py",
        "geneb_ci/audit/tolerance.py",
        "geneb_ci/audit/outcome.py",
    ),
    "verification": (
        "geneb_ci/audit/beacon.py",
        "geneb_ci/audit/applicability.py",
        "geneb_ci/audit/canonical.py",
        "geneb_ci/audit/verify.py",
        "geneb_ci/audit/commitment.py",
        "geneb_ci/audit/envelope.py",
        "geneb_ci/audit/keys.py",
        "geneb_ci/audit/plan.py",
        "geneb_ci/audit/record.py",
        "geneb_ci/audit/events.py",
    ),
    "publish compare-and-swap": (
        "geneb_ci/publish/comparison.py",
        "geneb_ci/publish/difference.py",
        "geneb_ci/publish/generation.py",
        "geneb_ci/publish/push.py",
        "geneb_ci/publish/session.py",
    ),
    "reconcile": (
        "geneb_ci/github/judge.py",
        "geneb_ci/github/judgement.py",
        "geneb_ci/github/groups.py",
        "geneb_ci/github/verdict.py",
        "geneb_ci/github/reconcile.py",
        "geneb_ci/github/waits.py",
    ),
}
FILES: tuple[str, ...] = tuple(file for files in TARGETS.values() for file in files)
