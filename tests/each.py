"""Many cases in one test, where they differ in their values alone and share no folder.

A test costs pytest and its workers more than what such a case asserts.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Ids = Iterable[str] | Callable[[Any], Any] | None


def each(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Ids = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that calls a function with every case, as `parametrize` would.

    All cases are tried. The test raises BaseExceptionGroup with the errors, each with the name of
    its case. Raises ValueError where there is no case.
    """
    split = [word.strip() for word in names.split(",")] if isinstance(names, str) else [*names]
    arguments = [(case,) if len(split) == 1 else tuple(case) for case in cases]
    if callable(ids):
        texts = [", ".join(str(ids(value)) for value in case) for case in arguments]
    else:
        texts = [", ".join(map(repr, case)) for case in arguments] if ids is None else [*ids]
    if not arguments:
        raise ValueError(f"no case of {', '.join(split)}")

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def every(**fixtures: Any) -> None:
            failed = []
            for case, name in zip(arguments, texts, strict=True):
                try:
                    function(**fixtures, **dict(zip(split, case, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (raised below)
                    error.add_note(f"case: {name[:NAME_CHARACTERS]}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(arguments)} cases", failed)

        parameters = inspect.signature(function).parameters
        shown = [parameter for name, parameter in parameters.items() if name not in split]
        vars(every).update(__signature__=inspect.Signature(shown))
        return every

    return decorate


NAME_CHARACTERS = 500
"""Of a case whose name is its values: they may be megabytes."""
