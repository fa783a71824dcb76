"""What the package promises about itself."""

import ast
import sys
import tomllib
from pathlib import Path

from tests.each import each
from tests.harness.support import REPOSITORY, Harness

PACKAGE = REPOSITORY / "reference_harness"
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            result |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            result.add(node.module.partition(".")[0])
    return result


@each("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_stands_alone(path: Path) -> None:
    assert "geneb_ci" not in imported(path)


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 20


def test_the_command_line_loads_no_blas(harness: Harness) -> None:
    """A worker imports it before its BLAS is held to one thread."""
    code = "import sys, reference_harness.cli.main\n"
    code += "print(sorted({'numpy', 'torch'} & set(sys.modules)))"
    assert harness(code=code).stdout == "[]\n"


def test_the_process_that_starts_the_workers_loads_no_scikit_learn(harness: Harness) -> None:
    """It fits nothing, and the import takes longer than many a run of GENEB-mini."""
    modules = {"sklearn", "scipy", "torch"}
    code = "import sys, reference_harness.cli.run, reference_harness.rescore.scoring\n"
    assert harness(code=f"{code}print(sorted({modules} & sys.modules.keys()))").stdout == "[]\n"


def test_the_wheel_carries_what_is_read_at_run_time() -> None:
    document = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    carried = document["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for name in ("benchmark.json", "benchmark-mini.json"):
        assert carried[f"schemas/{name}"] == f"reference_harness/_shipped/schemas/{name}"
    assert sys.version_info >= (3, 11)
