"""`geneb-ci doctor`: which sandbox levels, GPUs and packages this machine has."""

import importlib.metadata
import platform
import tempfile
import urllib.request
from pathlib import Path

import click

from geneb_ci import __version__
from geneb_ci.cli.shared import width
from geneb_ci.common.errors import LeftOver
from geneb_ci.render.tables import fitted
from geneb_ci.sandbox import cgroups, levels, mounts, processes

PACKAGES = ("numpy", "torch", "transformers", "safetensors", "huggingface_hub", "cryptography",
            "py_arkworks_bls12381")  # fmt: skip
CHAIN = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
BEACON = f"https://api.drand.sh/{CHAIN}/info"
BEACON_SECONDS = 5


@click.command("doctor")
@click.option("--network", is_flag=True, help="Also test the connection to the public beacon.")
def doctor_command(network: bool) -> None:
    """Show what this machine supports: sandbox levels, limits, GPUs, packages."""
    say(f"geneb-ci {__version__}, Python {platform.python_version()}, {platform.platform()}")
    say("sandbox levels")
    with tempfile.TemporaryDirectory() as folder:
        for level, name in levels.LEVELS.items():
            say(f"  {level}  {name}: {_state(level, Path(folder))}")
    say(f"number of processes limited by: {cgroups.holder()}")
    say(f"GPU devices: {', '.join(mounts.gpu_devices()) or 'none'}")
    say(f"left from an earlier audit: {_left()}")
    say("packages: " + ", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    say(f"public beacon: {_beacon() if network else 'not tested (pass --network)'}")


def say(line: str) -> None:
    """Print a line, wrapped at the width of the terminal."""
    click.echo(fitted(line, width()), nl=False)


def _state(level: int, folder: Path) -> str:
    cause = levels.unavailable_because(level, folder)
    if cause is not None:
        return f"no, {cause}"
    return {0: "only with --i-wrote-this-code", 4: "only with --throw-away-machine"}.get(
        level, "yes"
    )


def _left() -> str:
    try:
        processes.refuse_leftovers(processes.scratch_folder())
    except LeftOver as error:
        return f"{error.message}; {error.fix}"
    return "nothing"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def _beacon() -> str:
    try:
        with urllib.request.urlopen(BEACON, timeout=BEACON_SECONDS) as answer:
            return f"reached, status {answer.status}"
    except OSError as error:
        return f"not reached: {error}"
