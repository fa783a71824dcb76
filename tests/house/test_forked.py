"""What forked commands share with those of a new interpreter, and that they share nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from geneb_ci.common.config import cache_folder
from reference_harness.embedding.cache import default_cache
from tests import forked
from tests.audit.installed import Installed
from tests.paths import PUBLIC, ROOT


def test_the_server_has_one_thread_so_no_fork_lacks_any(tmp_path):
    (tmp_path / "asked.py").write_text(
        "import os; print(os.listdir(f'/proc/{os.getppid()}/task') == [str(os.getppid())])"
    )
    assert forked.run("asked", cwd=tmp_path).stdout == "True\n"


SHARING = """
import os, pathlib, sys, wave
from tests import forked
forked.LIBRARIES, forked.modules = (), tuple
folder = pathlib.Path(__file__).parent
forked.share(folder)
os.sched_setaffinity(0, [int(sys.argv[1])])
for _ in sys.stdin:
    print(forked.run("asked", cwd=folder).stdout, end="", flush=True)
forked.stop()
"""


def test_a_command_of_an_installation_is_a_fork_that_has_its_modules(tmp_path):
    """Otherwise each command would load the product anew, for a third of a second."""
    repository = Installed(tmp_path, boxed=False)
    (repository.root / "asked.py").write_text(
        "import sys; print(sys.modules['geneb_ci.cli.audit'].__file__)"
    )
    module_file = forked.installation() / "geneb_ci/cli/audit.py"
    assert repository.run("asked").stdout == f"{module_file}\n"


def test_workers_share_a_server_which_ends_with_the_last_of_them(tmp_path):
    """No fork runs the main module of the tests, which alone imports `wave`."""
    (tmp_path / "asked.py").write_text(
        "import os, sys; print(os.getppid(), *os.sched_getaffinity(0), 'wave' in sys.modules)"
    )
    (tmp_path / "started.py").write_text(SHARING)
    processors = sorted(os.sched_getaffinity(0))
    numbers = [processors[0], processors[-1]]
    workers = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "started.py"), str(number)],
            env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for number in numbers
    ]  # fmt: skip
    messages = []
    for worker in workers:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
        messages.append(worker.stdout.readline().split())
    assert workers[0].stdin is not None
    workers[0].stdin.close()  # it waits for the other
    messages.append(workers[1].communicate("\n", timeout=forked.HANG_SECONDS)[0].split())
    with workers[0]:
        assert [workers[0].wait(forked.HANG_SECONDS), workers[1].returncode] == [0, 0]
    assert [int(number) for _, number, _ in messages] == [*numbers, numbers[1]]
    assert {has_main for *_, has_main in messages} == {"False"}
    (server,) = {number for number, *_ in messages}
    assert not Path(f"/proc/{server}").exists()


def test_a_fork_has_folder_environment_streams_and_exit_code_of_its_own(tmp_path):
    message = "import os, sys; print(os.getcwd(), sys.argv, dict(os.environ), sys.stdin.read())"
    (tmp_path / "asked.py").write_text(f"{message}\nprint('bad', file=sys.stderr)\nsys.exit(7)\n")
    done = forked.run("asked", "a", cwd=tmp_path, env={"ONE": "1"})
    assert (done.returncode, done.stderr) == (7, "bad\n")
    assert done.stdout == f"{tmp_path} [{str(tmp_path / 'asked.py')!r}, 'a'] {{'ONE': '1'}} \n"


def test_another_installation_is_used_where_the_path_names_one(tmp_path):
    (tmp_path / "geneb_ci").mkdir()
    (tmp_path / "geneb_ci/__init__.py").touch()
    (tmp_path / "geneb_ci/__main__.py").write_text("print(__file__)\n")
    named = {"PYTHONPATH": str(tmp_path)}
    done = forked.run("geneb_ci", cwd=PUBLIC, env=named)
    assert (done.stdout, done.stderr) == (f"{tmp_path / 'geneb_ci/__main__.py'}\n", "")


@pytest.mark.nightly  # of the tests' own means
def test_the_installation_has_a_server_that_loaded_its_product_and_the_checkout_another(tmp_path):
    (tmp_path / "asked.py").write_text(
        "import sys; print(sys.modules['geneb_ci.audit.record.statement'].__file__, sys.path[1])"
    )
    site = forked.installation()
    assert site == forked.installation()
    for home in (site, ROOT):
        done = forked.run("asked", cwd=tmp_path, env={"PYTHONPATH": str(home)})
        assert done.stdout == f"{home / 'geneb_ci/audit/record/statement.py'} {home}\n"
    assert [*site.rglob("*.json")] != []


def test_nothing_that_reads_the_environment_is_loaded_before_it_is_set(tmp_path):
    (tmp_path / "asked.py").write_text("import sys; print('huggingface_hub' in sys.modules)")
    assert forked.run("asked", cwd=tmp_path).stdout == "False\n"


def test_the_modules_that_are_loaded_are_the_products():
    names = forked.modules()
    assert {"geneb_ci.cli.main", "reference_harness.cli.run"} < set(names)
    files = {Path(*name.split(".")) for name in names}
    assert all((ROOT / f"{file}.py").exists() or (ROOT / file).is_dir() for file in files)


def test_neither_a_test_nor_a_command_uses_the_caches_of_the_user(tmp_path):
    """Else an earlier run, of another version, could lend this one its results."""
    ours = {cache_folder("check").parents[1], default_cache().parent}
    assert len(ours) == 1
    assert all(folder.name.startswith("geneb-ci-caches-") for folder in ours)
    (tmp_path / "asked.py").write_text(
        "from reference_harness.embedding.cache import default_cache; print(default_cache())"
    )
    assert forked.run("asked", cwd=tmp_path).stdout == f"{default_cache()}\n"
