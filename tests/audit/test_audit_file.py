"""`audit FILE` and `audit queue` as a maintainer runs them: stops, refusals, limits, tables."""

import json
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import click
import pytest

from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from geneb_ci.audit.rerun.prepare import Machine
from geneb_ci.audit.rerun.workspace import ENDING_SECONDS, open_work_folder
from geneb_ci.audit.sampling.plan import read_commitment
from geneb_ci.cli.audit_queue import QueuedAudit, listed_audits, queue_command
from geneb_ci.cli.main import main
from geneb_ci.cli.shared import device_option, machine_of, machine_options
from geneb_ci.common.errors import LeftOver
from tests.audit.file_place import GO, MODEL, SLOW, begun, harnessed, made, work_of
from tests.audit.installed import Installed
from tests.gate import gated
from tests.sandbox.conftest import sandbox_of

FILE = f"submissions/{MODEL}.json"
ONE = "[[audit]]\nfile = 'a.json'\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return made(tmp_path_factory.mktemp("audit"), tmp_path_factory.mktemp("scratch"))


@pytest.fixture(scope="module")
def stopped(installed: Installed) -> str:
    """Run the first call, and give what it printed."""
    done = installed.run("geneb_ci", "audit", FILE, "--unsigned", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_call_shows_the_cost_and_stops_with_the_command_that_continues(
    installed: Installed, stopped: str
) -> None:
    digest = read_commitment(work_of(installed) / "commitment.json").sha256
    cost, _, rest = stopped.partition("commitment ")
    assert cost.startswith("cost of a draw to come, in the mean, on this machine (cpu):\n  2 tasks")
    assert rest == (
        f"{digest}\n"
        f"{MODEL}: 2 of 2 tasks will be drawn\n"
        "publish this digest where a server outside of your control timestamps it: as "
        "commit status geneb/audit-commit, or in the ledger; then continue with that time, in "
        "UTC:\n"
        f"  geneb-ci audit {FILE} --unsigned --committed-at 2026-11-20T08:30:00Z\n"
        f"or, for practice, at once and offline: geneb-ci audit {FILE} --unsigned --practice\n"
        f"next: geneb-ci audit {FILE} --unsigned --practice\n"
    )
    assert not (work_of(installed) / "plan.json").exists()


def test_a_dry_run_stops_before_the_digest_is_shown(installed: Installed, stopped: str) -> None:
    done = installed.run("geneb_ci", "audit", FILE, "--dry-run")
    # The checks before it are timed each time.
    shown, first = (re.sub(r"[\d.]+ (s|min)\b", "TIME", text) for text in (done.stdout, stopped))
    assert first.startswith(shown)
    assert "commitment" not in shown


@pytest.mark.usefixtures("stopped")
def test_a_queue_shows_cost_digest_and_the_command_that_continues(installed: Installed) -> None:
    digest = read_commitment(work_of(installed) / "commitment.json").sha256
    with installed.unboxed_processes():
        done = installed.run("geneb_ci", "audit", "queue", FILE, "--unsigned", "--device", "cpu")
        dry = installed.run("geneb_ci", "audit", "queue", FILE, "--dry-run")
    table, _, details = done.stdout.partition("\n\n")
    assert table.splitlines()[1].split(maxsplit=2) == ["0", FILE, "to be published"]
    assert details.startswith(f"{FILE}:\ncost of a draw to come, in the mean, on this machine")
    assert details.endswith(
        f"commitment {digest}\n"
        "publish this digest; then continue with the time at which it became public, in UTC\n"
        f"next: geneb-ci audit {FILE} --unsigned --device cpu --committed-at 2026-11-20T08:30:00Z\n"
    )
    assert "wrote " not in done.stderr
    assert "cost of a draw to come" in dry.stdout
    assert digest not in dry.stdout


@pytest.mark.usefixtures("stopped")
def test_a_report_says_what_is_to_be_done_next(installed: Installed) -> None:
    digest = read_commitment(work_of(installed) / "commitment.json").sha256
    words = ("audit", FILE, "--unsigned", "--report", "report.json")
    again = installed.run("geneb_ci", *words)
    # Never the same next command twice: what is missing, and who knows where the audit stands.
    assert "nothing was drawn: --committed-at is missing, the time at which" in again.stdout
    assert again.stdout.endswith("\nnext: geneb-ci next --as maintainer\n")
    document = json.loads((installed.root / "report.json").read_bytes())
    assert document.pop("cost").startswith("cost of a draw to come")
    assert document == {
        "exit_code": 0,
        "state": "to be published",
        "commitment": digest,
        "next": f"geneb-ci {' '.join(words)} --committed-at 2026-11-20T08:30:00Z",
    }


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--token-budget", "0"), 2, "'0' is not a token budget: pass a number such as 2048, or"),
        (
            ("--level", "0", "--i-wrote-this-code"),
            11,
            "began with --level 2, and the command has --level 0",
        ),
        (("--limit-memory", "much"), 2, "'much' is not a size: pass 512M or 24G"),
        (("--limit-time", "0"), 2, "is not a time: pass 600, 90m or 2h"),
        (("--device", "cuda:x"), 2, "pass cpu, cuda, or cuda:1"),
        (("--limit-memory", "16"), 3, "raise the limit with --limit-memory"),
        (("--work", "policy.toml/x"), 2, "--work DIR"),
    ],
)
@pytest.mark.usefixtures("stopped")
def test_what_does_not_fit_is_refused(
    installed: Installed, options: tuple[str, ...], code: int, message: str
) -> None:
    (installed.root / "policy.toml").touch()
    if options[0] == "--limit-memory" and code == 3:
        options = (*options, "--work", "small")
    done = installed.run("geneb_ci", "audit", FILE, "--unsigned", *options, check=False)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("stopped")
def test_a_changed_submission_is_refused_once_its_digest_is_published(installed: Installed) -> None:
    file = installed.root / FILE
    stored_bytes, begun_before = file.read_bytes(), work_of(installed)
    assert (begun_before / "shown").is_file()
    file.write_bytes(stored_bytes + b"\n")
    try:
        # A call that shows no digest changes nothing; the limit ends this one early.
        dry = ("--dry-run", "--limit-memory", "16")
        assert installed.run("geneb_ci", "audit", FILE, *dry, check=False).returncode == 3
        done = installed.run("geneb_ci", "audit", FILE, "--unsigned", *GO, check=False)
    finally:
        file.write_bytes(stored_bytes)
        for folder in {*begun_before.parent.iterdir()} - {begun_before}:
            shutil.rmtree(folder)
    assert done.returncode == 11
    assert "is the time of commitment" in done.stderr
    assert "since then, submission changed" in done.stderr


def test_without_a_key_nothing_begins(installed: Installed) -> None:
    done = installed.run("geneb_ci", "audit", FILE, check=False)
    assert (done.returncode, "there is no private key to sign with" in done.stderr) == (2, True)


def test_words_that_are_no_file_get_a_suggestion(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "comit"]) == 2
    assert "No such command 'comit'. Did you mean 'commit'?" in capsys.readouterr().err
    assert main(["audit", "missing.json", "--unsigned"]) == 3
    assert "missing.json" in capsys.readouterr().err


@pytest.mark.nightly
def test_a_queue_carries_what_it_can_and_continues(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    installed = made(tmp_path / "audit", tmp_path / "scratch")
    folder = installed.root / "submissions" / "extractors"
    folder.mkdir(exist_ok=True)
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    harnessed(installed, "slow", f"{folder / 'slow.py'}:Slow")
    first = (
        f'[[audit]]\nfile = "{FILE}"\ncommitted-at = "{GO[1]}"\nbeacon_file = "round.json"\n'
        'token-budget = "auto"\n'
        '[[audit]]\nfile = "submissions/missing.json"\n'
    )
    (installed.root / "list.toml").write_text(
        f'{first}[[audit]]\nfile = "submissions/slow.json"\nlimit-task-time = "2s"\n',
        encoding="utf-8",
    )
    command = ("geneb_ci", "audit", "queue", "--from", "list.toml", "--unsigned")
    with installed.unboxed_processes():
        done = installed.run(*command, check=False)
        lines = done.stdout.splitlines()
        assert (done.returncode, lines[0]) == (3, "code  file"), done.stderr
        assert lines[1].split() == ["0", FILE, "agrees"]
        assert lines[2].split()[:2] == ["3", "submissions/missing.json"]
        assert "2 s" in lines[3]  # refused before the draw, or on a busy machine stopped later
        assert "--limit-task-time" in done.stderr
        assert lines[4] == (
            "3 audits: 1 without an error, 0 that differ or are refused, 2 not carried out"
        )
        outcome = json.loads((work_of(installed) / "outcome.json").read_bytes())
        limits = outcome["sandbox"]["limits"]
        assert {name: limits[name] for name in ("seconds", "total_seconds", "token_budget")} == {
            "seconds": 3600, "total_seconds": 86_400, "token_budget": 2048,
        }  # fmt: skip
        (installed.root / "list.toml").write_text(first, encoding="utf-8")
        again = installed.run(*command, "--device", "cpu", "--device", "cpu", check=False)
        assert again.stdout.splitlines()[:3] == lines[:3]
        assert ": embedding" not in again.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", 'list.toml: found "x", expected tables [[audit]]'),
        ("[[audit]]\nname = 'x'", "the key file is missing"),
        ("[[audit]]\nfile = 'a.json'\ndevice = 'cpu'", "the queue itself sets 'device'"),
        ("[[audit]]\nfile = 'a.json'\n[[audit]]\nfile = './a.json'", "is listed more than once"),
        ("[[audit", "not a TOML file"),
        ("audit = []", "there is nothing to audit"),
        (f"{ONE}unsigned = 'true'", "audit 1: unsigned: 'true' is neither true nor false"),
        (f"{ONE}dry-run = 1", "audit 1: dry-run: 1 is neither true nor false"),
        (f"{ONE}data = true", "audit 1: data: True is neither a text nor a whole number"),
        (f"{ONE}committed-at = [1]", "audit 1: committed-at: [1] is neither a text nor a whole"),
        (f"{ONE}committed-at = 2026-11-20T08:30:00", "is not a time in UTC, to the second"),
        (f"{ONE}committed-at = 2026-11-20", "is neither a text nor a whole number"),
        (f"{ONE}committed-at = 'soon'", "a.json: --committed-at 'soon' is not a time"),
        (f"{ONE}copies = 3", "a.json: Invalid value for '--copies': 3 is not in the range x>=16"),
        (f"{ONE}unsigned = true\nkey = 'k.pem'", "a.json: --unsigned writes no record, and --key"),
    ],
)
def test_a_list_that_is_wrong_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "list.toml"
    file.write_text(text, encoding="utf-8")
    assert main(["audit", "queue", "--from", str(file)]) in {2, 3}
    assert message in capsys.readouterr().err


def test_a_list_may_have_times_of_toml(tmp_path: Path) -> None:
    file = tmp_path / "list.toml"
    file.write_text(
        f"{ONE}committed-at = 2026-11-20T09:30:00+01:00\nunsigned = true\ndry-run = false\n"
        "relay = ['https://a', 'https://b']\n",
        encoding="utf-8",
    )
    words = ("--committed-at", "2026-11-20T08:30:00Z", "--unsigned")
    assert listed_audits(file) == [
        QueuedAudit("a.json", (*words, "--relay", "https://a", "--relay", "https://b"))
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--unsigned", "--key", "k.pem"),
            "--unsigned writes no record, and --key is for a record",
        ),
        (("--unsigned", "--output", "o"), "--unsigned writes no record, and --output is for"),
        (("--device", "gpu"), "'gpu' is not a device: pass cpu, cuda, or cuda:1"),
    ],
)
@pytest.mark.parametrize("before", [(), ("queue",)])
def test_options_that_contradict_each_other_are_refused_at_once(
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    before: tuple[str, ...],
    message: str,
) -> None:
    """No file is read for that: there is none."""
    assert main(["audit", *before, "missing.json", *words]) == 2
    assert message in capsys.readouterr().err


@click.command()
@device_option
@machine_options
def machine_command(**options: Any) -> Machine:
    """Return the machine of the options, as every command that reruns has them."""
    return machine_of(options)


@pytest.mark.parametrize(
    ("words", "device", "has_gpu"),
    [
        ((), "cpu", False),
        (("--device", "cuda"), "cuda", True),
        (("--device", "cuda:1"), "cuda:1", True),
        (("--gpu",), "cuda", True),  # the earlier name
        (("--gpu", "--device", "cpu"), "cpu", False),
    ],
)
def test_the_device_alone_decides_whether_the_sandbox_has_the_gpus(
    words: tuple[str, ...], device: str, has_gpu: bool
) -> None:
    machine = machine_command.main([*words], standalone_mode=False)
    assert (machine.device, machine.gpu) == (device, has_gpu)
    assert machine.token_budget == (None if has_gpu else 2048)


def test_a_queue_on_a_gpu_has_one_worker() -> None:
    with queue_command.make_context("queue", ["a.json", "--gpu"]) as context:
        assert context.params["devices"] == ("cuda",)


def test_other_options_are_refused_before_a_file_is_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["audit", "missing.json", "--committed-at", "soon"]) == 2
    assert "--committed-at 'soon' is not a time" in capsys.readouterr().err
    assert main(["audit", "run", "missing.json", "--unsigned", "--key", "k.pem"]) == 2
    assert "--unsigned writes no record" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ending", "code"), gated([(signal.SIGINT, 130), (signal.SIGKILL, -9)], (signal.SIGKILL, -9))
)
def test_the_end_of_a_queue_ends_its_audits(
    installed: Installed, tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    for _ in sandbox_of(2, tmp_path / "trial"):
        pass  # fails or skips where there is none
    (tmp_path / "cache").mkdir()
    cache_folder = installed.environment["XDG_CACHE_HOME"]
    installed.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    try:
        with begun(installed, "queue", FILE, "--unsigned") as process:
            assert process.stderr is not None
            for line in process.stderr:
                if "timing the extractor" in line:
                    process.send_signal(ending)
                    break
            process.stderr.read()
        folder = work_of(installed)
    finally:
        installed.environment["XDG_CACHE_HOME"] = cache_folder
    assert process.returncode == code
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        try:
            with open_work_folder(folder) as work:  # nobody holds it any more
                assert not work.scratch.exists()
                return
        except LeftOver:  # after SIGKILL, the audit ends a little later than the queue
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_for_practice_one_command_goes_from_a_file_to_a_record_offline(
    installed: Installed,
) -> None:
    again = ("geneb_ci", "audit", FILE, "--practice", "--work", "practice", "--key", "key.pem")
    with installed.without_audits():
        done = installed.run(*again)
        assert "anybody can foresee the draw" in done.stderr
        (record,) = record_files(installed.root / "leaderboard/audits")
        plan = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]["plan"]
        assert plan["beacon"]["kind"] == "practice"
        verified = installed.run("geneb_ci", "audit", "verify", str(record), "--format", "json")
        assert json.loads(verified.stdout)["records"][0]["verified"]
        why = installed.run("geneb_ci", "explain", MODEL).stdout
        assert "by a practice draw, which anybody could foresee" in " ".join(why.split())
        refused = installed.run(*again, "--beacon-file", "round.json", check=False)
        assert refused.returncode == 2
        assert "--practice cannot be combined with --beacon-file" in refused.stderr
