"""The process in which an extractor runs: it checks properties and writes a line for each.

`python -m reference_harness.conformance.child_process REQUEST RESULTS`. The extractor shares this
process and could forge the results: this finds mistakes and is not a security boundary.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import IO

from reference_harness.extractors.base import SignatureError, UnknownOptionError
from reference_harness.loading.file_watch import WATCH
from reference_harness.run.progress import SilentListener

from .full_check import full_check_of
from .properties import BY_SLUG, LOADS
from .result import BrokenError, Outcome, PropertyResult, UnverifiedError
from .subject import Subject


class _LineListener(SilentListener):
    """Writes the progress of a full check as lines, which also show that the process is alive."""

    def __init__(self, results_file: IO[str]) -> None:
        """Store the open file to which lines are written."""
        self._results = results_file

    def begin(self, task_id: str, sequences: int) -> None:
        """Write the name of a property that begins, and the number of its embeddings."""
        _write(self._results, {"begin": task_id, "todo": sequences})

    def step(self, sequences: int, letters: int) -> None:
        """Write the number of embedded sequences and of their letters."""
        _write(self._results, {"step": [sequences, letters]})

    def say(self, line: str) -> None:
        """Write a line for the user."""
        _write(self._results, {"say": line})


def main(request_path: str, results_path: str) -> None:
    """Check the properties of the request in order, up to a failed load."""
    request = json.loads(Path(request_path).read_bytes())
    slugs = request.pop("properties")
    with Path(results_path).open("a", encoding="utf-8") as results_file:
        subject = Subject(**request, listener=_LineListener(results_file))
        WATCH.start()
        for slug in slugs:
            _write(results_file, {"started": slug})
            if BY_SLUG[slug].is_full:
                _say_cost(subject)
            try:
                result = property_result(slug, subject)
            except UnknownOptionError as error:
                _write(results_file, {"usage": str(error)})
                return
            _write(results_file, result.as_dict())
            if slug == LOADS and result.is_refused():
                return


def _say_cost(subject: Subject) -> None:
    """Write once what the full check embeds; a failed load is reported by the property itself."""
    with contextlib.suppress(Exception):
        if "full check" not in subject.shared:
            subject.listener.say(full_check_of(subject).cost())


def property_result(slug: str, subject: Subject) -> PropertyResult:
    """Return the result of one property; any exception of the extractor fails it.

    Raise UnknownOptionError for an option that the extractor does not have.
    """
    check = BY_SLUG[slug].check
    if check is None:
        raise AssertionError(slug)
    try:
        check_outcome = check(subject)
    except UnverifiedError as error:
        return PropertyResult(
            property=slug,
            outcome=Outcome.NOT_VERIFIED,
            sentence=error.sentence,
            measured=error.distance,
            tolerance=None if error.distance is None else subject.tolerance,
        )
    except BrokenError as error:
        return PropertyResult(
            property=slug,
            outcome=Outcome.FAILS,
            sentence=error.sentence,
            example=error.example,
            measured=error.distance,
            tolerance=None if error.distance is None else subject.tolerance,
        )
    except UnknownOptionError:
        raise
    except SignatureError as error:
        return PropertyResult(property=slug, outcome=Outcome.FAILS, sentence=str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - untrusted code may raise anything
        location = _error_location(error)
        sentence = f"{type(error).__name__}: {error}{location}"
        return PropertyResult(property=slug, outcome=Outcome.FAILS, sentence=sentence)
    sentence, measured = (
        check_outcome if isinstance(check_outcome, tuple) else (check_outcome, None)
    )
    return PropertyResult(
        property=slug,
        outcome=Outcome.HOLDS,
        sentence=sentence,
        measured=measured,
        tolerance=None if measured is None else subject.tolerance,
    )


def _error_location(error: BaseException) -> str:
    """Return file and line of the innermost frame of the first cause, in parentheses, or ""."""
    while error.__cause__ is not None:
        error = error.__cause__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"


def _write(results_file: IO[str], line: dict[str, object]) -> None:
    """Write a line of JSON and flush it."""
    results_file.write(json.dumps(line) + "\n")
    results_file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
