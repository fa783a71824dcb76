"""Compares the state after a chapter with the expected one."""


class Mismatch(Exception):  # noqa: N818 (named after what is wrong)
    """The state after a chapter is not the expected one."""


def require_equal(subject: str, actual: object, expected: object) -> None:
    """Raise Mismatch if a value is not the expected one."""
    if actual != expected:
        raise Mismatch(f"{subject}: found {actual!r}, expected {expected!r}")


def require_in(subject: str, expected_part: str, text: str | list[str]) -> None:
    """Raise Mismatch if `expected_part` does not occur in a text or a list."""
    if expected_part not in text:
        raise Mismatch(f"{subject}: {expected_part!r} is missing")
