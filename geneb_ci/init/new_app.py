"""Make a GitHub App for a board with two clicks; the App sets verdicts and proposes audits.

GitHub makes an App from a manifest: a page sends it from the maintainer's browser, GitHub asks for
confirmation, and redirects the browser with a code that is valid for an hour and returns the App's
key once. The key is stored only in the environments of audits and verdicts; each job that needs a
token makes one from it, which is valid for an hour. Once the App is installed, main accepts the
status of a verdict only from the App.
"""

import contextlib
import html
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import monotonic, sleep
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, ValidationError

from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.github.api import GITHUB_ADDRESS, VERDICT_APP, VERDICT_BOT, connect
from geneb_ci.github.audit_ready import (
    AUDIT_APP,
    AUDIT_APP_KEY,
    AUDIT_ENVIRONMENT,
    VERDICT_ENVIRONMENT,
    VERDICT_KEY,
)
from geneb_ci.github.connection import Connection
from geneb_ci.github.errors import RETRY_FIX, NotFound, UnexpectedReply
from geneb_ci.github.replies import Id, ReplyModel, User, parsed
from geneb_ci.github.settings.apply import set_verdict_ruleset
from geneb_ci.github.settings.client import SettingsClient, variable_path
from geneb_ci.github.settings.required import SETTINGS
from reference_harness.formats.text import Say

INSTALL_WAIT_S, BROWSER_POLL_S, GITHUB_POLL_S, PRINT_PAUSE_S = 600.0, 1.0, 5.0, 60.0
"""In seconds: the time that the maintainer has, and the pauses between two polls of the browser,
two requests to GitHub and two printed lines."""
APP_NAME_MAX = 34  # letters of an App's name on GitHub
APP_PERMISSIONS = {
    "contents": "write",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "write",
}
"""Permissions of the App, for pull requests with records and for statuses of verdicts."""
KEY_SECRET_BY_ENVIRONMENT = {AUDIT_ENVIRONMENT: AUDIT_APP_KEY, VERDICT_ENVIRONMENT: VERDICT_KEY}
"""Name of the secret that contains the App's key, by environment."""
_MANIFEST_PAGE = """<!doctype html>
<meta charset="utf-8"><title>geneb-ci: {name}</title>
<form method="post" action="{action}">
<input type="hidden" name="manifest" value="{manifest}">
<p>GitHub will ask you to create the App <b>{name}</b>, which may write Contents, Pull requests
and Commit statuses of the repositories that you install it on.</p>
<button>Go to GitHub</button>
</form>
"""
"""Page whose button sends the manifest of the App to GitHub."""
_APP_MADE_PAGE = """<!doctype html>
<meta charset="utf-8"><title>geneb-ci</title>
<p>GitHub made the App. Go back to the terminal.</p>
"""
"""Page that is shown after GitHub has made the App."""


class NewApp(ReplyModel):
    """A new GitHub App, in GitHub's answer, which has the App's private key only once."""

    id: Id
    owner: User
    client_id: str
    slug: str
    """The App's name in addresses: github.com/apps/SLUG."""
    pem: str = Field(repr=False)
    """The App's private key, in the format PEM."""
    html_url: str


def manifest_of_app(repository: str, redirect: str) -> dict[str, Any]:
    """Return the manifest of an App for a repository: what GitHub needs to know to make the App."""
    _, repository_name = repository.split("/")
    return {
        "name": f"{repository_name[: APP_NAME_MAX - len(' audits')]} audits",
        "url": f"{_site()}/{repository}",
        "redirect_url": redirect,
        "public": False,
        "hook_attributes": {"url": f"{_site()}/{repository}", "active": False},
        "default_permissions": APP_PERMISSIONS,
        "default_events": [],
    }


def make_app(repository: str, say: Say, *, dry_run: bool) -> NewApp | None:
    """Make an App by a maintainer's clicks, store its id and key, and return the App.

    Once it is installed, main accepts verdicts only from the App.

    Return None after a dry run. Raises UsageProblem if the key cannot be stored, the ruleset cannot
    be set, or nobody clicks in time; GitHubProblem if GitHub fails.
    """
    with connect(repository) as github:
        client = SettingsClient(github.connection)
        owner = client.repository.get("owner") or {}
        require_environments(client)
        manifest_page = ManifestPage(repository, owner.get("type") == "Organization")
        if dry_run:
            say(json.dumps(manifest_of_app(repository, "http://127.0.0.1/made"), indent=1))
            say("nothing was made: this was a dry run")
            return None
        app = app_of_code(client, wait_for_code(manifest_page, say))
        try:
            store_key(client, app)
        except GenebError as error:
            raise UsageProblem(
                f"the App {app.slug} was made, but its key was not stored: {error.message}",
                f"delete the App at {app.html_url}, {error.fix}, and run this command again",
            ) from error
        say(f"made the App {app.slug}; stored its key in {' and '.join(KEY_SECRET_BY_ENVIRONMENT)}")
        restrict_verdicts(client, app, say)
    return app


def require_environments(client: SettingsClient) -> None:
    """Raise UsageProblem if an environment for the key is missing or already has a key."""
    for environment, secret_name in KEY_SECRET_BY_ENVIRONMENT.items():
        path = f"/environments/{environment}"
        if client.get(path, "Actions: read") is None:
            raise UsageProblem(
                f"{client.connection.repository} has no environment {environment}, which the App's "
                "key is stored in",
                "run: geneb-ci init --apply",
            )
        if client.get(f"{path}/secrets/{secret_name}", "Environments: read") is not None:
            raise UsageProblem(
                f"the environment {environment} already has the key of an App",
                f"to make another App, first delete that key: gh secret delete {secret_name} "
                f"--env {environment}",
            )
        _public_key_of_environment(client, path)


def store_key(client: SettingsClient, app: NewApp) -> None:
    """Store the App's id and key where audits and verdicts read them. Raises GitHubProblem."""
    from github.PublicKey import encrypt

    for environment, secret_name in KEY_SECRET_BY_ENVIRONMENT.items():
        path = f"/environments/{environment}"
        key = _public_key_of_environment(client, path)
        secret = {"encrypted_value": encrypt(key["key"], app.pem), "key_id": key["key_id"]}
        client.send("PUT", f"{path}/secrets/{secret_name}", secret)
    client.set_variable(variable_path(AUDIT_APP, AUDIT_ENVIRONMENT), app.client_id)


def restrict_verdicts(client: SettingsClient, app: NewApp, say: Say) -> None:
    """Wait until the App is installed, then make main accept verdicts only from the App.

    If main accepted only the App before it is installed, no verdict could be set. After ten
    minutes the commands for the remaining steps are printed instead. Raises UsageProblem, with the
    same commands, if GitHub refuses a step.
    """
    account = f"users/{app.slug}[bot]"
    commands = (
        f"gh variable set {VERDICT_APP} --body {app.id}; "
        f'gh variable set {VERDICT_BOT} --body "$(gh api {account} --jq .id)"; '
        "geneb-ci init --apply"
    )
    say(f"install the App only on {client.connection.repository}: {app.html_url}/installations/new")
    if not _wait_for_installation(client, app, say):
        say(
            "the App is not installed yet; as soon as it is, run these commands, so that main "
            f"accepts verdicts only from the App: {commands}"
        )
        return
    try:
        user = parsed(User, client.connection.get_at(f"/{account}"), f"the account of {app.slug}")
        client.set_variable(variable_path(VERDICT_APP), str(app.id))
        client.set_variable(variable_path(VERDICT_BOT), str(user.id))
        set_verdict_ruleset(
            client,
            [setting for setting in SETTINGS if setting.apply == set_verdict_ruleset.__name__],
        )
    except GenebError as error:
        raise UsageProblem(
            f"the App {app.slug} is installed, but main still accepts verdicts from others: "
            f"{error.message}",
            f"run these commands: {commands}",
        ) from error
    say(f"main accepts the status geneb/verdict only from the App {app.slug}")


def _wait_for_installation(client: SettingsClient, app: NewApp, say: Say) -> bool:
    """Wait at most ten minutes until the App is installed; return whether it is.

    The requests to GitHub are made as the App.
    """
    import github

    identity = github.Auth.AppAuth(app.id, app.pem)
    connection = Connection(
        identity,
        client.connection.repository,
        client.connection.api,
        client.connection.waiting_limits,
    )
    with contextlib.closing(connection):
        for _ in _polls("the installation of the App", say):
            with contextlib.suppress(NotFound):
                connection.get("/installation")
                return True
            sleep(GITHUB_POLL_S)
    return False


def _polls(event: str, say: Say) -> Iterator[None]:
    """Yield repeatedly for ten minutes; print once a minute that `event` has not happened yet."""
    started, printed_at = monotonic(), 0.0
    while (waited := monotonic() - started) < INSTALL_WAIT_S:
        if waited - printed_at > PRINT_PAUSE_S:
            printed_at = waited
            say(f"waiting for {event}, {waited / 60:.0f} minutes so far")
        yield


def _public_key_of_environment(client: SettingsClient, path: str) -> dict[str, str]:
    """Return the key with which secrets of an environment must be encrypted."""
    public_key = client.get(f"{path}/secrets/public-key", "Environments: read")
    if not isinstance(public_key, dict) or not {"key", "key_id"} <= set(public_key):
        raise UnexpectedReply(f"GitHub returned no key to encrypt secrets of {path}", RETRY_FIX)
    return public_key


def app_of_code(client: SettingsClient, code: str) -> NewApp:
    """Return the App that GitHub made, in exchange for the code that it sent to the browser.

    Raises GitHubProblem if GitHub fails, and UsageProblem for an invalid code or the code of
    another owner's App, since another account of this machine could send such a code.
    """
    try:
        answer = client.connection.send_at("POST", f"/app-manifests/{code}/conversions")
    except NotFound as error:
        message = "GitHub has no App for this code: it was used before, or an hour has passed"
        raise UsageProblem(message, "run: geneb-ci init --app") from error
    try:
        app = NewApp.model_validate(answer)
    except ValidationError:
        fix = "delete the App on GitHub, then run: geneb-ci init --app"
        raise UnexpectedReply("GitHub made an App, but did not return its key", fix) from None
    owner, _ = client.connection.repository.split("/")
    if app.owner.login.casefold() != owner.casefold():
        raise UsageProblem(
            f"the code is for the App {app.slug} of {app.owner.login}, expected an App of {owner}",
            f"run: geneb-ci init --app, and create the App in your browser as {owner}",
        )
    return app


@dataclass
class ManifestPage:
    """The page that sends a manifest to GitHub, and the code that GitHub returns."""

    repository: str
    is_organisation: bool
    """Whether an organisation owns the repository."""
    address: str = ""
    """Address of the page on this machine."""
    code: str = ""
    """The code that GitHub sent; "" until then."""
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Random text that GitHub must send back, so that nobody else can send a code."""

    def page(self) -> str:
        """Return the page with the manifest, whose button leads to GitHub."""
        owner, _ = self.repository.split("/")
        account = f"/organizations/{owner}" if self.is_organisation else ""
        app_manifest = manifest_of_app(self.repository, f"{self.address}/made")
        return _MANIFEST_PAGE.format(
            name=html.escape(app_manifest["name"]),
            action=html.escape(f"{_site()}{account}/settings/apps/new?state={self.state}"),
            manifest=html.escape(json.dumps(app_manifest)),
        )

    def store_code(self, query: str) -> bool:
        """Store the code in a query if the query has our `state`; return whether it was stored."""
        parameters = {name: texts[-1] for name, texts in parse_qs(query).items()}
        code = parameters.get("code", "")
        is_ours = secrets.compare_digest(parameters.get("state", "").encode(), self.state.encode())
        if not is_ours or not code.isascii() or not code.isalnum():
            return False
        self.code = code
        return True


def wait_for_code(manifest_page: ManifestPage, say: Say) -> str:
    """Serve the page until GitHub sends a code, and return the code.

    Raises UsageProblem after ten minutes.
    """
    with _serve(manifest_page) as server:
        say(f"open {manifest_page.address} in a browser on this machine and create the App")
        for _ in _polls("the App", say):
            server.handle_request()
            if manifest_page.code:
                return manifest_page.code
    raise UsageProblem(
        f"no App was made in {INSTALL_WAIT_S / 60:.0f} minutes", "run: geneb-ci init --app"
    )


@contextlib.contextmanager
def _serve(manifest_page: ManifestPage) -> Iterator[HTTPServer]:
    """Yield a server on this machine that serves the page and stores GitHub's code in it."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == "/":
                self._answer(HTTPStatus.OK, manifest_page.page())
            elif path == "/made" and manifest_page.store_code(query):
                self._answer(HTTPStatus.OK, _APP_MADE_PAGE)
            else:
                self._answer(HTTPStatus.NOT_FOUND, "")

        def _answer(self, status: HTTPStatus, page: str) -> None:
            raw = page.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_arguments: Any) -> None:
            """Print nothing, because the address contains the code."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.timeout = BROWSER_POLL_S
        manifest_page.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield server


def _site() -> str:
    """Return the address of GitHub: GITHUB_SERVER_URL if that is an address of the web."""
    site = os.environ.get("GITHUB_SERVER_URL") or GITHUB_ADDRESS
    return site if urlsplit(site).scheme in {"http", "https"} else GITHUB_ADDRESS
