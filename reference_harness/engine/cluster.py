"""The Ray cluster that a run uses: one that is there, or one of this machine alone."""

import importlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from reference_harness.errors import OptionError
from reference_harness.formats.processes import processors
from reference_harness.formats.text import plural

MISSING = "the package ray is missing: pip install 'geneb-ci[ray]'"
ADDRESS = "RAY_ADDRESS"
"""Ray's own variable: where the cluster is. Without it, one that was started on this machine."""


class Size(NamedTuple):
    """The resources of a cluster at the moment."""

    machines: int
    cpus: int
    gpus: int
    least_cpus: int
    """CPUs of the smallest machine."""

    def __str__(self) -> str:
        count = plural(self.machines, "machine")
        return f"{count}, {plural(self.cpus, 'CPU')}, {plural(self.gpus, 'GPU')}"


class Cluster:
    """A connection to Ray; see `connected`."""

    def __init__(self, ray: Any, *, is_own: bool) -> None:  # a module, imported late
        self.ray = ray
        self.is_own = is_own
        """Whether it was started for this run, so that no machine will join it."""
        self.stopped = threading.Event()
        """Set by Ctrl-C, which reaches the main thread alone, where each run has its own."""

    def size(self) -> Size:
        """Return the machines that are alive, and the CPUs and GPUs of these."""
        each = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        cpus = [int(resources.get("CPU", 0)) for resources in each]
        gpus = sum(int(resources.get("GPU", 0)) for resources in each)
        return Size(len(each), sum(cpus), gpus, min((n for n in cpus if n), default=1))


@contextmanager
def connected(*, start: bool = True) -> Iterator[Cluster]:
    """Connect to the cluster of `RAY_ADDRESS` or of this machine, or `start` one here.

    Ray sends nothing to its makers and opens no dashboard. Raises OptionError where Ray is missing,
    the cluster does not answer, or there is none and none is to be started.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # A process without a GPU sees none: what Ray does from its next version on.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray: Any = importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise OptionError(MISSING) from error
    # Ray prints which machine died, and the state of its processes, to the standard output of the
    # command, also without `log_to_driver`. What matters to a run, the run says itself.
    vars(importlib.import_module("ray._private.worker"))["_worker_logs_enabled"] = False
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    is_own, terminated = False, signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=os.environ.get(ADDRESS) or "auto", **quiet)
    except ConnectionError as error:
        if os.environ.get(ADDRESS):
            msg = f"{ADDRESS}={os.environ[ADDRESS]}: no cluster answers there: {error}"
            raise OptionError(" ".join(msg.split())) from error
        if not start:
            msg = "no Ray cluster was found: run `ray start --head`, or set RAY_ADDRESS"
            raise OptionError(msg) from error
        is_own = True
        ray.init(address="local", num_cpus=processors(), include_dashboard=False, **quiet)
    signal.signal(signal.SIGTERM, terminated)  # Ray's own ends the process at once
    try:
        yield Cluster(ray, is_own=is_own)
    finally:
        ray.shutdown()
