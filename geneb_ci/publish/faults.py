"""What can go wrong between us and the Hub, and how its client's errors are translated."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from geneb_ci.audit.storage import StorageFailure, storage_failure
from geneb_ci.common.errors import GenebError, UsageProblem, machine_fault


class PublishFault(GenebError):
    """Base of what a maintainer is told."""


class NoHubToken(PublishFault):
    """There is no token, or the identity of the CI job could not be turned into one."""


class HubTokenRefused(PublishFault):
    """The Hub answers 401."""


class NoWriteRight(PublishFault):
    """The Hub answers 403."""


class RepoMissing(PublishFault):
    """The Hub answers 404."""


class NotFastForward(PublishFault):
    """A newer commit has been published, or a rollback covers ours."""


class BadManifest(PublishFault):
    """manifest.json on the Space cannot be read as ours."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"{where}: manifest.json was not written by geneb-ci: {reason}",
            "look at the Space's history; restore the file there, or delete it to publish anew",
        )


class NewerManifest(PublishFault):
    """manifest.json on the Space has a format that this version does not know."""


class HubRefused(PublishFault):
    """The Hub does not take what was sent, and would not take it again."""


class Local(PublishFault):
    """This machine does not do what the Hub's client asks of it; the Hub has no part in it."""


class Unverified(PublishFault):
    """The Space serves something else than was published."""


class RetriesExhausted(PublishFault):
    """The last of the tries failed, too."""


class Retryable(Exception):
    """One try failed."""


class HeadChanged(Retryable):
    """The head of the repository is not the one we built on."""


class Locked(Retryable):
    """Somebody else's commit is being written."""


class Limited(Retryable):
    """Too many requests; `wait_s` seconds must pass, or None where the Hub does not say."""

    def __init__(self, message: str, wait_s: float | None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Unstored(Retryable):
    """The Hub's storage fails; it gets the large files before the commit, so that none was made."""


class Unknown(Retryable):
    """The answer got lost, and with it whether the commit was made."""


# What the Hub says where the token itself is wrong; every other 401 hides a missing repository.
_BAD_CREDENTIALS = "Invalid credentials in Authorization header"
TEXT_MAX = 200  # characters of the Hub's own words in a message


@contextlib.contextmanager
def translated(
    resource: str, *, writing: bool, large: Callable[[], list[str]] = list
) -> Iterator[None]:
    """Turn the client's exceptions into those of `faults`; `resource` is "spaces/OWNER/NAME".

    `large` names the files that were to go to the Hub's storage.
    """
    from huggingface_hub.errors import (  # noqa: PLC0415 (a second to import)
        BadRequestError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
    )
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # noqa: PLC0415 (public)

    try:
        yield
    except HfHubHTTPError as error:
        raise _of_status(error, resource, writing=writing) from error
    except httpx.HTTPStatusError as error:
        raise Unknown(f"status {error.response.status_code}") from error
    except OfflineModeIsEnabled as error:
        raise HubRefused("HF_HUB_OFFLINE is set, so nothing can be sent", "unset it") from error
    except HFValidationError as error:
        raise UsageProblem(
            f"{resource!r} cannot be the name of a repository", "name it as OWNER/NAME"
        ) from error
    except httpx.HTTPError as error:
        raise Unknown(f"no usable answer from the Hub ({type(error).__name__})") from error
    except (OSError, RuntimeError) as error:
        raise _beyond_the_hub(error, resource, large()) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # The client holds the header of a card, README.md, against the Hub before it sends it.
        if isinstance(error.__cause__, BadRequestError):
            fix = "mend the header of the card, README.md"
            raise HubRefused(f"{resource}: {_line(error)}", fix) from error
        # It checks no answer: what has another shape than it expects fails anyhow.
        raise Unknown(f"no usable answer from the Hub ({type(error).__name__})") from error


def _beyond_the_hub(error: Exception, resource: str, large: list[str]) -> Exception:
    """Translate what neither the Hub nor its own client said: of its storage, or of this machine.

    Anything else comes back as it is.
    """
    cause = error.__cause__
    told = storage_failure(error)
    if isinstance(error, RuntimeError) and cause is not None:
        # How the Hub's own client says that one file could not be stored, where Xet is off.
        status = getattr(getattr(cause, "response", None), "status_code", None)
        answer = f"answers {status}" if status else f"does not answer ({type(cause).__name__})"
        told = StorageFailure(f"the Hub's storage {answer}", status, by_hub=False)
        if isinstance(cause, OSError) and cause.errno is not None:
            told = cause
    if isinstance(told, StorageFailure):
        return _of_storage(told, large)
    known = told or error
    if isinstance(known, ConnectionError | TimeoutError):
        return Unknown(f"the connection to the Hub failed ({type(error).__name__})")
    fault = machine_fault(known) if isinstance(known, OSError) else None
    if fault is None:
        return error
    from huggingface_hub.constants import HF_XET_CACHE  # noqa: PLC0415 (a second to import)

    return Local(
        f"{resource}: this machine failed, not the Hub: {fault.message}; the Hub's client works "
        f"in {HF_XET_CACHE}",
        f"{fault.fix}; HF_HOME moves the folder of the client",
    )


def _of_storage(told: StorageFailure, large: list[str]) -> Exception:
    others = f" and {len(large) - 1} more" if len(large) > 1 else ""
    what = f"{told.what}; this concerns {large[0]}{others}" if large else told.what
    status = told.status
    if told.by_hub and status in _FAULTS:
        kind, _, fix = _FAULTS[status]
        return kind(what, fix)
    if status is None or status == HTTPStatus.UNAUTHORIZED or setback(status, {}):
        return Unstored(what)  # a later try begins with a new token
    return HubRefused(what, _STORAGE_FIX)


_STORAGE_FIX = (
    "another try would end the same: look whether a proxy or firewall of your network stands "
    "between, and at https://status.huggingface.co; see docs/publishing.md"
)


def _of_status(error: Any, resource: str, *, writing: bool) -> Exception:  # noqa: ANN401 (the client is imported late)
    status: int = error.response.status_code
    headers: Mapping[str, str] = error.response.headers
    asked = [urlsplit(str(one.url)).netloc for one in (*error.response.history, error.response)]
    if asked[0] != asked[-1]:  # the Hub said where the bytes lie, and that place answered
        host = asked[-1]
        what = f"the Hub's storage ({host}) answers {status} when asked for the bytes"
        if status == HTTPStatus.FORBIDDEN:
            return Unstored(what)  # such an address is good for a while; the Hub gives a new one
        return _of_storage(StorageFailure(what, status, by_hub=False), [])
    hidden = status == HTTPStatus.UNAUTHORIZED and not (
        writing or headers.get("X-Error-Message") == _BAD_CREDENTIALS
    )
    if hidden or status == HTTPStatus.NOT_FOUND:
        return RepoMissing(
            f"{resource} does not exist, or the token may not see it", _creation(resource)
        )
    if status in _FAULTS:
        kind, what, fix = _FAULTS[status]
        verb = "write to" if writing else "read"
        return kind(f"{what.format(resource=resource, verb=verb)} ({status:d})", fix)
    return setback(status, headers) or _refused(error, resource, status)


def setback(status: int, headers: Mapping[str, str]) -> Retryable | None:
    """Return what another try may mend, by the status of an answer; None for anything else."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Limited("too many requests (429)", _wait(headers))
    if status == HTTPStatus.PRECONDITION_FAILED:
        return HeadChanged("another commit came first (412)")
    if status == HTTPStatus.CONFLICT:
        return Locked("another commit is being written (409)")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
        return Unknown(f"the Hub failed ({status:d})")
    return None


def _refused(error: Any, resource: str, status: int) -> HubRefused:  # noqa: ANN401 (as above)
    said = _line(error.server_message or error)
    return HubRefused(f"{resource}: the Hub answers {status:d}: {said}", "see docs/publishing.md")


def _line(said: object) -> str:
    return " ".join(str(said).split())[:TEXT_MAX]


_FAULTS: dict[int, tuple[type[PublishFault], str, str]] = {
    HTTPStatus.UNAUTHORIZED: (
        HubTokenRefused,
        "the Hub refuses the token for {resource}",
        "it may have expired or been revoked: make a new one, or check the trusted publisher",
    ),
    HTTPStatus.FORBIDDEN: (
        NoWriteRight,
        "the token may not {verb} {resource}",
        "give it write access to this repository, and to no other",
    ),
}


def _wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait: of the RateLimit header, else of Retry-After."""
    from huggingface_hub.utils import (  # type: ignore[attr-defined]  # noqa: PLC0415 (public, not re-exported)
        parse_ratelimit_headers,
    )

    told = parse_ratelimit_headers(headers)
    if told is not None:
        return float(told.reset_in_seconds)
    after = headers.get("Retry-After", "").strip()
    return float(after) if after.isdecimal() else None


def _creation(resource: str) -> str:
    kind, _, name = resource.partition("/")
    if kind == "spaces":
        return f"create it: hf repos create {name} --type space --space-sdk static"
    return f"create it: hf repos create {name} --type {kind.removesuffix('s')}"
