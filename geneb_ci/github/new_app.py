"""A GitHub App of the board's own, which proposes audits: made by one click, its key stored.

GitHub makes an App from a manifest: a page sends it from the maintainer's browser, GitHub asks him,
and sends him back with a code that is good for an hour and buys the App's key once. The key goes to
the environment of audits and nowhere else; the workflow mints a token of an hour from it for each
job that needs one.
"""

import html
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, ValidationError

from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.github.api import connect
from geneb_ci.github.audit_ready import APP, APP_KEY, ENVIRONMENT
from geneb_ci.github.errors import AGAIN, NotFound, UnexpectedReply
from geneb_ci.github.replies import ReplyModel, User
from geneb_ci.github.settings.client import SettingsClient
from reference_harness.formats.text import Say

SITE = "https://github.com"
WAIT_S, POLL_S, LINE_S = 600.0, 1.0, 60.0
"""How long a person has, how often the clock is looked at, and how often a line is printed."""
NAME_MAX = 34  # letters of an App's name
RIGHTS = {"contents": "write", "metadata": "read", "pull_requests": "write"}
"""The permissions that a pull request with a record needs."""
_ENVIRONMENT = f"/environments/{ENVIRONMENT}"
_PAGE = """<!doctype html>
<meta charset="utf-8"><title>geneb-ci: {name}</title>
<form method="post" action="{action}">
<input type="hidden" name="manifest" value="{manifest}">
<p>GitHub will ask you to create the App <b>{name}</b>, which may write Contents and Pull requests
of the repositories that you install it on.</p>
<button>Go to GitHub</button>
</form>
"""
_DONE = """<!doctype html>
<meta charset="utf-8"><title>geneb-ci</title>
<p>GitHub made the App. Go back to the terminal.</p>
"""


class NewApp(ReplyModel):
    """A new App, as GitHub describes it once."""

    owner: User
    client_id: str
    slug: str
    pem: str = Field(repr=False)
    html_url: str


def manifest(repository: str, redirect: str) -> dict[str, Any]:
    """Return what GitHub is asked to make: an App for one repository, without a webhook."""
    _, name = repository.split("/")
    return {
        "name": f"{name[: NAME_MAX - len(' audits')]} audits",
        "url": f"{_site()}/{repository}",
        "redirect_url": redirect,
        "public": False,
        "hook_attributes": {"url": f"{_site()}/{repository}", "active": False},
        "default_permissions": RIGHTS,
        "default_events": [],
    }


def make_app(repository: str, say: Say, *, dry_run: bool) -> NewApp | None:
    """Make an App by a maintainer's click, and store its id and key; None after a dry run.

    Raises UsageProblem where it cannot be stored or nobody clicks, ForgeProblem.
    """
    with connect(repository) as github:
        client = SettingsClient(github.wire)
        owner = client.repository.get("owner") or {}
        require_environment(client)
        visit = Visit(repository, owner.get("type") == "Organization")
        if dry_run:
            say(json.dumps(manifest(repository, "http://127.0.0.1/made"), indent=1))
            say("nothing was made: this was a dry run")
            return None
        app = bought(client, wait_for_code(visit, say))
        try:
            store(client, app)
        except GenebError as error:
            raise UsageProblem(
                f"the App {app.slug} was made, and its key not stored: {error.message}",
                f"delete the App at {app.html_url}, {error.fix}, and run this again",
            ) from error
    say(f"made the App {app.slug}; stored {APP} and {APP_KEY} in the environment {ENVIRONMENT}")
    return app


def require_environment(client: SettingsClient) -> None:
    """Raise UsageProblem where no key could be stored, or where there is one already."""
    if client.get(_ENVIRONMENT, "Actions: read") is None:
        raise UsageProblem(
            f"{client.wire.repository} has no environment {ENVIRONMENT}, which keeps the key",
            "geneb-ci init --apply",
        )
    if client.get(f"{_ENVIRONMENT}/secrets/{APP_KEY}", "Environments: read") is not None:
        raise UsageProblem(
            f"the environment {ENVIRONMENT} has the key of an App already",
            f"to make another, first: gh secret delete {APP_KEY} --env {ENVIRONMENT}",
        )
    _public_key(client)


def store(client: SettingsClient, app: NewApp) -> None:
    """Store the App's id and key where audits read them. Raises ForgeProblem."""
    from github.PublicKey import encrypt

    key = _public_key(client)
    secret = {"encrypted_value": encrypt(key["key"], app.pem), "key_id": key["key_id"]}
    client.send("PUT", f"{_ENVIRONMENT}/secrets/{APP_KEY}", secret)
    variable = {"name": APP, "value": app.client_id}
    path = f"{_ENVIRONMENT}/variables"
    if client.get(f"{path}/{APP}", "Environments: read") is None:
        client.send("POST", path, variable)
    else:
        client.send("PATCH", f"{path}/{APP}", variable)


def _public_key(client: SettingsClient) -> dict[str, str]:
    key = client.get(f"{_ENVIRONMENT}/secrets/public-key", "Environments: read")
    if not isinstance(key, dict) or not {"key", "key_id"} <= set(key):
        raise UnexpectedReply(f"GitHub names no key to encrypt secrets of {ENVIRONMENT} by", AGAIN)
    return key


def bought(client: SettingsClient, code: str) -> NewApp:
    """Return the App that a code buys, with its key.

    Raises ForgeProblem, and UsageProblem for a code of nothing or of somebody else's App: another
    account of this machine can read the page, too.
    """
    try:
        answer = client.wire.send_at("POST", f"/app-manifests/{code}/conversions")
    except NotFound as error:
        what = "GitHub knows no App of this code: it was used, or an hour has passed"
        raise UsageProblem(what, "geneb-ci init --app") from error
    try:
        app = NewApp.model_validate(answer)
    except ValidationError:
        how = "delete the App on GitHub, then: geneb-ci init --app"
        raise UnexpectedReply("GitHub made an App and did not give its key", how) from None
    owner, _ = client.wire.repository.split("/")
    if app.owner.login.casefold() != owner.casefold():
        raise UsageProblem(
            f"the App {app.slug} belongs to {app.owner.login}, expected {owner}",
            "geneb-ci init --app, and create the App yourself",
        )
    return app


@dataclass
class Visit:
    """The page that sends a manifest to GitHub, and the code that comes back."""

    repository: str
    is_organisation: bool
    address: str = ""
    code: str = ""
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Sent along, and expected back: nobody else can bring a code."""

    def page(self) -> str:
        """Return the page with the manifest, whose button leads to GitHub."""
        owner, _ = self.repository.split("/")
        account = f"/organizations/{owner}" if self.is_organisation else ""
        app = manifest(self.repository, f"{self.address}/made")
        return _PAGE.format(
            name=html.escape(app["name"]),
            action=html.escape(f"{_site()}{account}/settings/apps/new?state={self.state}"),
            manifest=html.escape(json.dumps(app)),
        )

    def take(self, query: str) -> bool:
        """Take the code of an answer of GitHub; returns whether it belongs to this visit."""
        values = {name: texts[-1] for name, texts in parse_qs(query).items()}
        code = values.get("code", "")
        belongs = secrets.compare_digest(values.get("state", "").encode(), self.state.encode())
        if not belongs or not code.isascii() or not code.isalnum():
            return False
        self.code = code
        return True


def wait_for_code(visit: Visit, say: Say) -> str:
    """Serve the page until GitHub sends a code, and return that.

    Raises UsageProblem after ten minutes.
    """
    with _serving(visit) as server:
        say(f"open {visit.address} in a browser on this machine, and create the App")
        begun, printed_at = monotonic(), 0.0
        while not visit.code:
            server.handle_request()
            waited = monotonic() - begun
            if waited > WAIT_S:
                raise UsageProblem(
                    f"no App was made in {WAIT_S / 60:.0f} minutes", "geneb-ci init --app"
                )
            if waited - printed_at > LINE_S:
                printed_at = waited
                say(f"waiting for the App since {waited / 60:.0f} minutes")
    return visit.code


@contextmanager
def _serving(visit: Visit) -> Iterator[HTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == "/":
                self._answer(HTTPStatus.OK, visit.page())
            elif path == "/made" and visit.take(query):
                self._answer(HTTPStatus.OK, _DONE)
            else:
                self._answer(HTTPStatus.NOT_FOUND, "")

        def _answer(self, status: HTTPStatus, text: str) -> None:
            raw = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing: the address has the code."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.timeout = POLL_S
        visit.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield server


def install_address(app: NewApp) -> str:
    """Return where the App is installed on the repository: the second click."""
    return f"{app.html_url}/installations/new"


def _site() -> str:
    site = os.environ.get("GITHUB_SERVER_URL") or SITE
    return site if urlsplit(site).scheme in {"http", "https"} else SITE
