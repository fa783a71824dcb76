"""Read and write a repository's settings by GitHub's REST API; read each answer once."""

import tomllib
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from geneb_ci.check.change import REGULAR, SUBMODULE, Blob
from geneb_ci.common.answers import ALONE, ANSWERS_FILE
from geneb_ci.github.api import GitHub
from geneb_ci.github.connection import Connection
from geneb_ci.github.errors import (
    RETRY_FIX,
    MissingScope,
    NotFound,
    UnexpectedReply,
    UnreadableSetting,
)
from geneb_ci.github.trees import TRUNCATED_TREE_FIX, TRUNCATED_TREE_MESSAGE, read_blob

MAIN_BRANCH = "main"
"""Branch that the workflows publish from; its name is written in them."""
LIST_PAGES_MAX = 10
"""Maximum number of pages of 100 labels, rules or rulesets that are read."""
ADMINISTRATION_READ, METADATA_READ = "Administration: read", "Metadata: read"


class SettingsClient:
    """A client for the settings of one repository; it reads each address once."""

    def __init__(self, connection: Connection, space: str = "", *, dry_run: bool = False) -> None:
        self.connection = connection
        self.space = space
        """The Space as OWNER/NAME; empty if the caller did not give it."""
        self.is_dry_run = dry_run
        """Whether writes are only listed."""
        self.sent: list[str] = []
        """Each write so far: verb and path."""
        self._replies: dict[str, Any] = {}
        self._github = GitHub(connection)

    def get(self, path: str, permission: str = METADATA_READ, **parameters: str | int) -> Any:
        """Return the JSON of a path of the repository; None if GitHub finds nothing there.

        `permission` is what a fine-grained token needs. Raises UnreadableSetting if the token may
        not read the path.
        """
        request = f"{path} {parameters}"
        return self._read_once(
            request, lambda: self.connection.get(path, **parameters).body, None, path, permission
        )

    def entries(self, path: str, permission: str = METADATA_READ) -> list[dict[str, Any]]:
        """Return all entries of the list at a path of the repository.

        Raises UnreadableSetting if the token may not read the list.
        """
        pages = self.connection.pages(path, LIST_PAGES_MAX)
        return list(
            self._read_once(
                path, lambda: [item for page in pages for item in page], [], path, permission
            )
        )

    def _read_once(
        self, request: str, read: Callable[[], Any], default: Any, path: str, permission: str
    ) -> Any:
        """Return the answer to `request`; it is read only the first time.

        Returns `default` if GitHub finds nothing. Raises UnreadableSetting if the token may not
        read the path.
        """
        if request not in self._replies:
            try:
                self._replies[request] = read()
            except NotFound:
                self._replies[request] = default
            except MissingScope as error:
                self._replies[request] = _unreadable_error(path, permission, error.message)
        reply = self._replies[request]
        if isinstance(reply, UnreadableSetting):
            raise reply
        return reply

    def settings(self, path: str) -> dict[str, Any]:
        """Return the settings at a path that every repository has.

        Raises UnreadableSetting if GitHub hides them from the token.

        GitHub answers 404 instead of 403 to many tokens without administrative rights.
        """
        reply = self.get(path, ADMINISTRATION_READ)
        if not isinstance(reply, dict):
            raise _unreadable_error(
                path, ADMINISTRATION_READ, "GitHub answers 404, as to a token without the right"
            )
        return reply

    def send(self, verb: str, path: str, body: Any = None) -> None:
        """Send a write, or only list it in a dry run. Raises MissingScope without the right."""
        self.sent.append(f"{verb} {path}")
        if not self.is_dry_run:
            self.connection.send(verb, path, body)
            self._replies.clear()

    def variable_value(self, path: str) -> str:
        """Return the value of a variable, or "". Raises UnreadableSetting as `get` does."""
        reply = self.get(path, _variable_permission(path))
        return str(reply.get("value", "")) if reply is not None else ""

    def set_variable(self, path: str, value: str) -> None:
        """Set a variable. Raises UnreadableSetting or MissingScope without the right."""
        collection, _, variable = path.rpartition("/")
        is_new = self.get(path, _variable_permission(path)) is None
        body = {"name": variable, "value": value}
        self.send("POST" if is_new else "PATCH", collection if is_new else path, body)

    # Files of main.

    @property
    def repository(self) -> dict[str, Any]:
        """The repository itself. Raises NotFound if there is none."""
        reply = self.get("")
        if not isinstance(reply, dict):
            raise NotFound(
                f"{self.connection.repository}: GitHub finds no such repository",
                "check the name; if the repository is private, use a token that may read it; if it "
                "does not exist: gh repo create OWNER/NAME --public",
            )
        return reply

    @property
    def has_main(self) -> bool:
        """Whether the branch main exists."""
        return self.get(f"/branches/{MAIN_BRANCH}", "Contents: read") is not None

    def file_ids(self) -> dict[str, str]:
        """Return the git id of each file of main by its path; empty without main."""
        if not self.has_main:
            return {}
        if "tree" not in self._replies:
            branch = self.get(f"/branches/{MAIN_BRANCH}", "Contents: read")
            tree = self._github.tree(branch["commit"]["sha"])
            if tree.is_truncated:
                raise UnexpectedReply(TRUNCATED_TREE_MESSAGE, TRUNCATED_TREE_FIX)
            self._replies["tree"] = {
                path: blob.sha for path, blob in tree.files.items() if blob.mode != SUBMODULE
            }
        return dict(self._replies["tree"])

    def file_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a file of main; None if there is none.

        Raises UnexpectedReply if it is too large or does not match its digest.
        """
        sha = self.file_ids().get(path)
        if sha is None:
            return None
        if sha not in self._replies:
            self._replies[sha] = read_blob(self._github, Blob(REGULAR, sha))
        raw = self._replies[sha]
        if not isinstance(raw, bytes):
            raise UnexpectedReply(f"{path}: {raw.message}", RETRY_FIX)
        return raw

    @property
    def has_sole_maintainer(self) -> bool:
        """Whether main's settings say that the board has only one maintainer."""
        try:
            answers = tomllib.loads((self.file_bytes(ANSWERS_FILE) or b"").decode())
        except ValueError:
            return False
        return answers.get(ALONE) is True

    def files_below(self, path: str) -> list[str]:
        """Return the paths of the files of main below a folder."""
        return [file for file in self.file_ids() if PurePosixPath(file).is_relative_to(path)]


def variable_path(name: str, environment: str = "") -> str:
    """Return the address of a variable of the repository, or of an environment."""
    return f"{f'/environments/{environment}' if environment else '/actions'}/variables/{name}"


def _variable_permission(path: str) -> str:
    """Return the permission that a token needs to read a variable."""
    return "Variables: read" if path.startswith("/actions/") else "Environments: read"


def _unreadable_error(path: str, permission: str, reason: str) -> UnreadableSetting:
    """Return the error about a path that a token may not read."""
    return UnreadableSetting(
        f"{path or 'the repository'} cannot be read: {reason}",
        f"use a token of an administrator with {permission}",
    )
