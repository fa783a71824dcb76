"""Compares the state after a chapter with the expected one."""


class Mismatch(Exception):  # noqa: N818 (named after what is wrong)
    """The state after a chapter is not the expected one."""


def hold(subject: str, actual: object, expected: object) -> None:
    """Raise Mismatch if a value is not the expected one."""
    if actual != expected:
        raise Mismatch(f"{subject}: found {actual!r}, expected {expected!r}")


def hold_in(subject: str, due: str, text: str | list[str]) -> None:
    """Raise Mismatch if `due` does not occur in a text or a list."""
    if due not in text:
        raise Mismatch(f"{subject}: {due!r} is missing")
