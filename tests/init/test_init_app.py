"""An App of the board's own: a page, a click on GitHub, the key stored where audits read it."""

import base64
import html
import json
import re
import threading
import time
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from nacl.public import PrivateKey, SealedBox

from geneb_ci.cli.main import main
from geneb_ci.github import errors
from geneb_ci.init import new_app
from geneb_ci.init.new_app import KEY_SECRET_BY_ENVIRONMENT
from tests.github.server import REPOSITORY
from tests.github.settings_server import SEALED_BY, SettingsServer
from tests.init.conftest import IMPATIENT

CODE = "a180b1a3d263c81bc6441d7b990bae27d4c10679"
PEM = (
    rsa.generate_private_key(public_exponent=65537, key_size=2048)
    .private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    .decode()
)
MADE: dict[str, Any] = {"client_id": "Iv23liA1", "slug": "board-audits", "pem": PEM, "id": 7}
MADE |= {"html_url": "https://github.com/apps/board-audits", "owner": {"id": 1, "login": "org"}}


@pytest.fixture
def forge(board, servers, identity, monkeypatch):
    """Lend GitHub the environment of audits, as `init --apply` makes it, and a code for an App."""
    monkeypatch.chdir(board.root)  # it names the repository
    for name, value in servers.environment(identity).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    for name in KEY_SECRET_BY_ENVIRONMENT:
        servers.forge.put_environment({}, {}, name)
    servers.forge.main_of = lambda: "a" * 40  # `init --apply` has pushed
    servers.forge.apps[CODE] = dict(MADE)
    return servers.forge


def only(pattern: str, text: str) -> str:
    """Return what a pattern finds in a page, as a browser reads it."""
    match = re.search(pattern, text)
    assert match is not None
    return html.unescape(match[1])


class Person(threading.Thread):
    """A maintainer who opens the page that the command names, and creates the App."""

    def __init__(self, capsys: Any, *visits: str) -> None:
        super().__init__(daemon=True)
        self.capsys, self.visits = capsys, visits
        self.page, self.said = "", ""
        self.statuses: list[int] = []
        self.start()

    def run(self) -> None:
        while not (named := re.search(r"open (http://\S+)", self.said)):
            time.sleep(0.01)
            self.said += self.capsys.readouterr().out
        self.page = requests.get(named[1], timeout=9).text
        state = only(r"\?state=([\w-]+)", self.page)
        for visit in self.visits:
            answer = requests.get(f"{named[1]}/made?{visit.format(state=state)}", timeout=9)
            self.statuses.append(answer.status_code)


def run(capsys: Any, *visits: str) -> tuple[int, Person, str, str]:
    """Run the command while a person visits; return its code, the person and what was printed."""
    person = Person(capsys, *visits)
    code = int(main(["init", "--app"]))
    person.join(9)
    assert not person.is_alive(), person.said + "".join(capsys.readouterr())
    out, err = capsys.readouterr()
    return code, person, person.said + out, err


def test_a_click_makes_an_app_and_stores_its_key(forge, capsys):
    code, person, out, err = run(capsys, f"code={CODE}&state={{state}}")
    assert (code, err, person.statuses) == (0, "", [200])
    action = only('action="([^"]+)"', person.page)
    assert action.startswith("https://github.com/organizations/org/settings/apps/new?state=")
    sent = json.loads(only('name="manifest" value="([^"]+)"', person.page))
    assert sent["default_permissions"] == {
        "contents": "write",
        "metadata": "read",
        "pull_requests": "write",
        "statuses": "write",
    }
    assert (sent["public"], sent["hook_attributes"]["active"]) == (False, False)
    assert forge.variables["geneb-audit"]["AUDIT_APP"] == "Iv23liA1"
    for environment, name in KEY_SECRET_BY_ENVIRONMENT.items():
        assert name in forge.secrets[environment]
        sealed = base64.b64decode(forge.sealed[name])
        assert SealedBox(PrivateKey(SEALED_BY)).decrypt(sealed).decode() == PEM
    assert PEM.splitlines()[1] not in out + err
    assert "https://github.com/apps/board-audits/installations/new" in out
    assert out.endswith(f"next: geneb-ci doctor --github {REPOSITORY}\n")
    # A second App would take the place of the first: it is refused before anybody clicks.
    assert main(["init", "--app"]) == 2
    assert "already has the key of an App" in capsys.readouterr().err


def required(forge: SettingsServer) -> list[dict[str, Any]]:
    """Return the checks that main requires."""
    return [
        check
        for ruleset in forge.rulesets.values()
        for rule in ruleset["rules"]
        if rule["type"] == "required_status_checks"
        for check in rule["parameters"]["required_status_checks"]
    ]


def test_main_takes_verdicts_from_the_installed_app_alone(forge, capsys):
    code, _, out, err = run(capsys, f"code={CODE}&state={{state}}")
    assert (code, err) == (0, "")
    assert forge.variables[""] == {"VERDICT_APP": "7", "VERDICT_BOT": "9"}
    assert required(forge) == [{"context": "geneb/verdict", "integration_id": 7}]
    assert "main accepts the status geneb/verdict only from the App board-audits" in out


def test_before_the_app_is_installed_main_takes_verdicts_as_before(forge, capsys, monkeypatch):
    """Nothing could set the status, and every pull request would wait."""
    forge.is_installed = False
    monkeypatch.setattr(new_app, "GITHUB_POLL_S", 0.01)
    monkeypatch.setattr(
        new_app, "_wait_for_installation", limited(new_app._wait_for_installation, monkeypatch)
    )
    code, _, out, _ = run(capsys, f"code={CODE}&state={{state}}")
    assert code == 0
    assert (forge.variables[""], required(forge)) == ({}, [])
    text = " ".join(out.split())
    assert "gh variable set VERDICT_APP --body 7; gh variable set VERDICT_BOT" in text


def test_where_the_status_cannot_be_pinned_the_commands_that_do_it_are_named(forge, capsys):
    """The key is stored by then, and a second call would refuse."""
    forge.permissions -= {"variables:write"}
    code, _, _, err = run(capsys, f"code={CODE}&state={{state}}")
    assert code == 2
    text = " ".join(err.split())
    assert "the App board-audits is installed, but main still accepts verdicts from others" in text
    assert "fix: run these commands: gh variable set VERDICT_APP --body 7" in text
    assert required(forge) == []


def limited(wait: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the wait for an installation, of a twentieth of a second."""

    def short(*arguments: Any) -> bool:
        monkeypatch.setattr(new_app, "INSTALL_WAIT_S", 0.05)
        return bool(wait(*arguments))

    return short


@pytest.mark.usefixtures("forge")
def test_nobody_else_brings_a_code(capsys):
    visits = (f"code={CODE}&state=guessed", "state={state}", "code=../x&state={state}")
    code, person, _, err = run(capsys, *visits, f"code={CODE}&state={{state}}")
    assert (code, err, person.statuses) == (0, "", [404, 404, 404, 200])


def test_a_code_that_buys_nothing_stores_nothing(forge, capsys):
    forge.apps.clear()
    code, _, _, err = run(capsys, f"code={CODE}&state={{state}}")
    assert code == 2
    assert "GitHub has no App for this code" in err
    assert "AUDIT_APP_KEY" not in forge.secrets["geneb-audit"]


def test_an_app_of_somebody_else_is_not_taken(forge, capsys):
    """Another account of the machine reads the page and brings a code of its own."""
    forge.apps[CODE]["owner"] = {"id": 7, "login": "stranger"}
    code, _, _, err = run(capsys, f"code={CODE}&state={{state}}")
    assert code == 2
    assert "the App board-audits of stranger, expected an App of org" in err
    assert "AUDIT_APP_KEY" not in forge.secrets["geneb-audit"]


def test_a_key_that_cannot_be_stored_is_no_silent_loss(forge, capsys):
    forge.permissions -= {"environments:write"}
    code, _, _, err = run(capsys, f"code={CODE}&state={{state}}")
    assert code == 2
    assert "the App board-audits was made, but its key was not stored" in err
    assert "delete the App at https://github.com/apps/board-audits" in " ".join(err.split())


@pytest.mark.usefixtures("forge")
def test_nobody_clicks(monkeypatch, capsys):
    monkeypatch.setattr(new_app, "INSTALL_WAIT_S", 0.0)
    monkeypatch.setattr(new_app, "BROWSER_POLL_S", 0.01)
    assert main(["init", "--app"]) == 2
    assert "no App was made in 0 minutes" in capsys.readouterr().err


def test_a_dry_run_shows_what_github_would_be_asked(forge, capsys):
    before = len(forge.writes())
    assert main(["init", "--app", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert '"pull_requests": "write"' in out
    assert len(forge.writes()) == before


def test_without_its_environment_there_is_no_place_for_the_key(forge, capsys):
    del forge.environments["geneb-audit"]
    assert main(["init", "--app"]) == 2
    assert "geneb-ci init --apply" in capsys.readouterr().err
