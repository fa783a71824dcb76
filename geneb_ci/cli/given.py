"""What a maintainer says of a run that format 1.0 does not describe."""

from geneb_ci.audit.commit import Given
from geneb_ci.errors import UsageProblem


def given_run(
    extractor: str | None,
    options: tuple[str, ...],
    model: str | None,
    revision: str | None,
    weights: tuple[str, ...],
    *,
    no_weights: bool,
) -> Given | None:
    """Gather what is said of a run; None when nothing is."""
    if extractor is None:
        if options or model or revision or weights or no_weights:
            raise UsageProblem(
                "options or weights are named without --extractor",
                "name both: --extractor PATH:CLASS",
            )
        return None
    if no_weights == bool(model) or bool(model) != bool(revision) or (no_weights and weights):
        raise UsageProblem(
            "the weights are named by halves",
            "either --model REPO with --revision COMMIT, or --no-weights",
        )
    return Given(extractor, model, revision, _pairs(weights), _pairs(options))


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in words)
