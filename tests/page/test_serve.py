"""`geneb-ci serve`: a real process, a real browser, and nobody from outside."""

import http.client
import http.server
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from geneb_ci.board.page import SECURITY_POLICY
from geneb_ci.cli.main import main
from tests.page.tab import opened
from tests.paths import ROOT
from tests.small import BENCHMARK_FILE, CARD, small

# Tests that run in the background of a shell inherit that Ctrl-C is ignored: a terminal's does not.
PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from geneb_ci.cli.main import main; sys.exit(main())"
)
COMMAND = [sys.executable, "-c", PROGRAM]
TYPES = {
    "": "text/html; charset=utf-8",
    "board.js": "text/javascript; charset=utf-8",
    "board-current.js": "text/javascript; charset=utf-8",
    "board.css": "text/css; charset=utf-8",
    "vendor/d3.min.js": "text/javascript; charset=utf-8",
    "models/first.html": "text/html; charset=utf-8",
    "badges/first.svg": "image/svg+xml",
    "leaderboard.json": "application/json",
}


TRAVERSALS = [
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc/passwd",
    "//etc/passwd",
    "/vendor/../../../etc/passwd",
    "/etc/passwd%00.js",
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Write a repository of two small submissions."""
    (tmp_path / "pyproject.toml").write_text('[tool.geneb-ci]\nbenchmark = "benchmark.json"\n')
    shutil.copy(BENCHMARK_FILE, tmp_path / "benchmark.json")
    (tmp_path / "submissions/cards").mkdir(parents=True)
    for name in ("first", "second"):
        (tmp_path / f"submissions/{name}.json").write_text(json.dumps(small(name)))
        (tmp_path / f"submissions/cards/{name}.md").write_text(CARD)
    return tmp_path


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "serve", "--no-diagnostics", *arguments],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1"},
    )


def test_the_page_is_shown_until_it_is_stopped(repository, browser):
    process = started("submissions", "--port", "0", cwd=repository)
    try:
        assert process.stdout is not None
        built, line = process.stdout.readline(), process.stdout.readline()
        assert built.endswith(" values.parquet and codebook.json: 2 models\n")
        address = re.fullmatch(r"open (http://127\.0\.0\.1:(\d+)/) in a browser; .*\n", line)
        assert address is not None
        with opened(browser, address[1]) as tab:
            page = tab.go("#/overview")
            assert "This board was built without intervals" in page.inner_text("main")
            tab.go("#/table")
            assert sorted(tab.names()) == ["Model first", "Model second"]
            assert page.locator(".fault, .scores .badge, .heat small").count() == 0
            for path in ("#/plots", "#/compare?m=first&m=second", "#/model/first", "#/about"):
                page = tab.go(path)
                assert page.locator(".fault").count() == 0
        answers(int(address[2]))
        process.send_signal(signal.SIGTERM)  # as a service manager does; Ctrl-C is below
        out, err = process.communicate(timeout=20)
    finally:
        ended(process)
    assert (process.returncode, out, err) == (0, "stopped\n", "")
    folder = Path(built.removeprefix("built ").partition("/leaderboard.json")[0])
    assert not folder.exists()


def ended(process: subprocess.Popen[str]) -> None:
    """End a server that may have ended, and close its pipes: else the next test is blamed."""
    process.kill()
    with process:
        pass


def answers(port: int) -> None:
    """Hold what the server says to good and bad questions."""

    def ask(method: str, path: str, host: str = "127.0.0.1") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request(method, path, headers={"Host": host})
        answer = connection.getresponse()
        answer.read()
        return answer

    for name, kind in TYPES.items():
        answer = ask("GET", f"/{name}")
        assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
        assert (
            answer.headers["Content-Security-Policy"]
            == f"{SECURITY_POLICY}; frame-ancestors 'none'"
        )
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Server"].strip() == "geneb-ci"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ask("GET", "/", "localhost").status == 200
    assert ask("GET", "/", "board.example.org").status == 403
    assert ask("HEAD", "/", "board.example.org").status == 403
    assert ask("GET", "/vendor/").status == 404
    for path in TRAVERSALS:
        assert ask("GET", path).status == 404
    assert ask("POST", "/").status == 501
    # Whoever goes away in the middle leaves no traceback on the terminal.
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /board-current.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        linger = struct.pack("ii", 1, 0)  # closes with a reset, unread
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert ask("GET", "/").status == 200


def served(capsys, *arguments: str) -> tuple[int, str, str]:
    """Run a command that ends before it serves; give its exit code and what it wrote."""
    code = main(["serve", "--no-diagnostics", *arguments])
    return code, *capsys.readouterr()


def test_a_built_board_is_served_as_it_is(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    assert main(["build", "--no-diagnostics", "--output", "board"]) == 0
    capsys.readouterr()
    folders = []

    def stop(running: http.server.ThreadingHTTPServer) -> None:
        folders.append(running.RequestHandlerClass.keywords["directory"])  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(http.server.ThreadingHTTPServer, "serve_forever", stop)
    code, out, _ = served(capsys, "board", "--port", "0")
    assert (code, folders) == (0, ["board"])
    assert re.fullmatch(r"open http://\S+ in a browser; Ctrl-C stops\nstopped\n", out)


@pytest.mark.parametrize("command", ["export --format csv --output", "build --output"])
def test_a_built_board_is_not_read_as_submissions(command, repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    (repository / "board").mkdir()
    (repository / "board/leaderboard.json").write_text("{}")
    assert main([*command.split(), "new", "board"]) == 2
    assert "board: this is a built board, expected a repository" in capsys.readouterr().err
    (repository / "leaderboard.json").write_text("{}")  # a repository beside its board
    assert main([*command.split(), "new", "."]) == 0


def test_a_port_that_is_taken_is_said_before_anything_is_built(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, out, err = served(capsys, "submissions", "--port", port)
    assert (code, out) == (2, "")
    assert err.startswith(f"geneb-ci: port {port} cannot be used: ")
    assert "choose another port: --port N, or --port 0 for any free one" in err


def test_without_a_folder_it_says_how_to_name_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _, out, err = served(capsys, "--port", "0")
    assert out == ""
    assert err.startswith("geneb-ci: the current folder has no submissions\n")
    assert err.endswith("pass a folder: geneb-ci serve FOLDER\n")


def test_a_faulty_submission_is_not_shown(repository, monkeypatch, capsys):
    path = repository / "submissions/first.json"
    path.write_text(path.read_text().replace('"zero_shot": true', '"zero_shot": 1'))
    monkeypatch.chdir(repository)
    code, out, err = served(capsys, "submissions", "--port", "0")
    assert code == 11
    assert "submissions/first.json" in out
    assert "nothing was built" in err
