"""Errors of publishing, and the translation of errors of the Hub's client."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from geneb_ci.common.errors import GenebError, UsageProblem, machine_fault
from reference_harness.formats.hub_storage import StorageFailure, storage_failure


class PublishFault(GenebError):
    """Base class of the errors of publishing."""


class NoHubToken(PublishFault):
    """There is no token, or the CI job's identity could not be exchanged for one."""


class HubTokenRefused(PublishFault):
    """The Hub answered 401: the token is not valid."""


class NoWriteRight(PublishFault):
    """The Hub answered 403: the token lacks a right that the request needs."""


class RepoMissing(PublishFault):
    """The Hub answered 404: the repository or file does not exist, or the token may not read it."""


class NotFastForward(PublishFault):
    """Publishing would undo a newer commit, a rollback, or published statements."""


class BadManifest(PublishFault):
    """The manifest.json on the Space is damaged, or geneb-ci did not write it."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"{where}: manifest.json is damaged, or geneb-ci did not write it: {reason}",
            "inspect the Space's history; restore the file, or delete it to publish again",
        )


class NewerManifest(PublishFault):
    """manifest.json on the Space has a newer format than this version supports."""


class HubRefused(PublishFault):
    """The Hub rejected the request, and would reject it again."""


class LocalFailure(PublishFault):
    """The disk, memory or network of this machine failed, not the Hub."""


class SpaceDiffers(PublishFault):
    """The Space differs from what was published."""


class RetriesExhausted(PublishFault):
    """All tries failed."""


class Retryable(Exception):
    """One try failed; another may succeed."""


class HeadChanged(Retryable):
    """The repository has a new head, with a commit by somebody else."""


class CommitInProgress(Retryable):
    """Another commit is in progress."""


class HubRateLimited(Retryable):
    """There were too many requests: wait `wait_s` seconds; None if the Hub states no time."""

    def __init__(self, message: str, wait_s: float | None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class StorageFailed(Retryable):
    """The Hub's storage of large files failed, before a commit was made."""


class UnknownOutcome(Retryable):
    """There was no valid answer, so that the commit may or may not have been made."""


# The Hub's message for an invalid token; any other 401 means a missing repository.
_BAD_CREDENTIALS = "Invalid credentials in Authorization header"
HUB_MESSAGE_MAX = 200  # characters of the Hub's message that are shown


@contextlib.contextmanager
def translated_errors(
    resource: str, *, writing: bool, large_files: Callable[[], list[str]] = list
) -> Iterator[None]:
    """Translate the client's exceptions into those of this module.

    `resource` is a repository, such as "spaces/OWNER/NAME". `large_files` returns the names of the
    files that are uploaded to the Hub's storage of large files.
    """
    from huggingface_hub.errors import (  # a second to import
        BadRequestError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
    )
    from huggingface_hub.utils import httpx

    try:
        yield
    except HfHubHTTPError as error:
        raise _status_error(error, resource, writing=writing) from error
    except httpx.HTTPStatusError as error:
        raise UnknownOutcome(f"the Hub answers {error.response.status_code}") from error
    except OfflineModeIsEnabled as error:
        raise HubRefused(
            "HF_HUB_OFFLINE is set, so the Hub cannot be reached", "unset HF_HUB_OFFLINE"
        ) from error
    except HFValidationError as error:
        raise UsageProblem(
            f"{resource!r} is not a valid repository name: {_shortened_message(error)}",
            "pass a name of the form OWNER/NAME that the Hub accepts",
        ) from error
    except httpx.HTTPError as error:
        raise UnknownOutcome(f"no usable answer from the Hub ({type(error).__name__})") from error
    except (OSError, RuntimeError) as error:
        raise _error_outside_hub(error, resource, large_files()) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # The client has the Hub validate the YAML header of README.md before uploading it.
        if isinstance(error.__cause__, BadRequestError):
            fix = "fix the YAML header of README.md"
            raise HubRefused(f"{resource}: {_shortened_message(error)}", fix) from error
        # The client does not validate answers: an unexpected one raises any exception.
        raise UnknownOutcome(f"no usable answer from the Hub ({type(error).__name__})") from error


def _error_outside_hub(error: Exception, resource: str, large_files: list[str]) -> Exception:
    """Translate errors of the Hub's storage and of this machine.

    Any other exception is returned unchanged.
    """
    cause = error.__cause__
    failure = storage_failure(error)
    if isinstance(error, RuntimeError) and cause is not None:
        # The client's error for a failed upload of a file without Xet.
        status = getattr(getattr(cause, "response", None), "status_code", None)
        answer = f"answers {status}" if status else f"does not answer ({type(cause).__name__})"
        failure = StorageFailure(f"the Hub's storage {answer}", status, by_hub=False)
        if isinstance(cause, OSError) and cause.errno is not None:
            failure = cause
    if isinstance(failure, StorageFailure):
        return _storage_error(failure, large_files)
    actual_error = failure or error
    if isinstance(actual_error, ConnectionError | TimeoutError):
        return UnknownOutcome(f"the connection to the Hub failed ({type(error).__name__})")
    fault = machine_fault(actual_error) if isinstance(actual_error, OSError) else None
    if fault is None:
        return error
    from huggingface_hub.constants import HF_XET_CACHE  # a second to import

    return LocalFailure(
        f"{resource}: this machine failed, not the Hub: {fault.message}; the Hub's client uses the "
        f"folder {HF_XET_CACHE}",
        f"{fault.fix}, or set HF_HOME to another folder for the Hub's client",
    )


def _storage_error(failure: StorageFailure, large_files: list[str]) -> Exception:
    """Return the error for a failure of the Hub's storage of large files."""
    more_text = f" and {len(large_files) - 1} more" if len(large_files) > 1 else ""
    message = (
        f"{failure.description} (uploading {large_files[0]}{more_text})"
        if large_files
        else failure.description
    )
    status = failure.status
    if failure.by_hub and status in _FAULT_BY_STATUS:
        fault_class, _, fix = _FAULT_BY_STATUS[status]
        return fault_class(message, fix)
    if status is None or status == HTTPStatus.UNAUTHORIZED or retryable_fault(status, {}):
        return StorageFailed(message)  # the next try gets a new upload token
    return HubRefused(message, _STORAGE_FIX)


_STORAGE_FIX = (
    "look for a proxy or firewall in your network, and look at https://status.huggingface.co, "
    "since a retry would fail too; see docs/maintainer/publishing.md"
)
"""Advice where the Hub's storage rejects an upload."""


def _status_error(
    error: Any, resource: str, *, writing: bool
) -> Exception:  # the client is imported late
    """Return the error for a status of the Hub or its storage, from the client's exception."""
    status: int = error.response.status_code
    headers: Mapping[str, str] = error.response.headers
    hosts = [
        urlsplit(str(response.url)).netloc for response in (*error.response.history, error.response)
    ]
    if hosts[0] != hosts[-1]:  # redirected to the storage, which answered
        host = hosts[-1]
        message = f"the Hub's storage ({host}) answers {status} to a download"
        if status == HTTPStatus.FORBIDDEN:
            return StorageFailed(message)  # the URL may have expired; a retry gets a new one
        return _storage_error(StorageFailure(message, status, by_hub=False), [])
    may_be_hidden = status == HTTPStatus.UNAUTHORIZED and not (
        writing or headers.get("X-Error-Message") == _BAD_CREDENTIALS
    )
    if may_be_hidden or status == HTTPStatus.NOT_FOUND:
        return RepoMissing(
            f"{resource} does not exist, or the token may not read it",
            f"{_creation_command(resource)}; if it exists, use a token that may read it",
        )
    if status in _FAULT_BY_STATUS:
        fault_class, message, fix = _FAULT_BY_STATUS[status]
        verb = "write to" if writing else "read"
        return fault_class(
            f"{message.format(resource=resource, verb=verb)} ({status:d})",
            fix.format(resource=resource),
        )
    return retryable_fault(status, headers) or _hub_refusal(error, resource, status)


def retryable_fault(status: int, headers: Mapping[str, str]) -> Retryable | None:
    """Return the Retryable error of a status; None if a retry would not help."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return HubRateLimited("too many requests (429)", _seconds_to_wait(headers))
    if status == HTTPStatus.PRECONDITION_FAILED:
        return HeadChanged("the repository has a new commit (412)")
    if status == HTTPStatus.CONFLICT:
        return CommitInProgress("another commit is in progress (409)")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
        return UnknownOutcome(f"the Hub failed ({status:d})")
    return None


def _hub_refusal(error: Any, resource: str, status: int) -> HubRefused:
    """Return the error for a request that the Hub rejects for a reason unknown to this module."""
    message = _shortened_message(error.server_message or error)
    return HubRefused(
        f"{resource}: the Hub answers {status:d}: {message}", "see docs/maintainer/publishing.md"
    )


def _shortened_message(message: object) -> str:
    """Return the beginning of a message of the Hub, on one line."""
    return " ".join(str(message).split())[:HUB_MESSAGE_MAX]


_FAULT_BY_STATUS: dict[int, tuple[type[PublishFault], str, str]] = {
    HTTPStatus.UNAUTHORIZED: (
        HubTokenRefused,
        "the Hub rejected the token for {resource}",
        (
            "create a new token, since this one may have expired or been revoked; with a trusted "
            "publisher, check its entry in the settings of {resource}"
        ),
    ),
    HTTPStatus.FORBIDDEN: (
        NoWriteRight,
        "the token may not {verb} {resource}",
        "use a token with write access to {resource} only",
    ),
}
"""Class, message and fix of the error for a status of the Hub."""


def _seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from the header RateLimit or Retry-After; None without both."""
    from huggingface_hub.utils import (
        parse_ratelimit_headers,
    )

    limit = parse_ratelimit_headers(headers)
    if limit is not None:
        return float(limit.reset_in_seconds)
    after = headers.get("Retry-After", "").strip()
    return float(after) if after.isdecimal() else None


def _creation_command(resource: str) -> str:
    """Return the advice to create a missing repository, with the command."""
    repository_type, _, repository = resource.partition("/")
    if repository_type == "spaces":
        return f"create it: `hf repos create {repository} --type space --space-sdk static`"
    return f"create it: `hf repos create {repository} --type {repository_type.removesuffix('s')}`"
