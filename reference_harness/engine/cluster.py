"""The Ray cluster of a run: an existing one, or one started on this machine."""

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

RAY_MISSING_MESSAGE = "the package ray is missing: pip install 'geneb-ci[ray]'"
ADDRESS_VARIABLE = "RAY_ADDRESS"
"""Environment variable with the address of a cluster; without it, one of this machine is used."""


class ClusterSize(NamedTuple):
    """The current numbers of machines, CPUs and GPUs of a cluster."""

    machines: int
    cpus: int
    gpus: int
    cpus_of_smallest: int
    """CPUs of the smallest machine."""

    def __str__(self) -> str:
        machines = plural(self.machines, "machine")
        return f"{machines}, {plural(self.cpus, 'CPU')}, {plural(self.gpus, 'GPU')}"


class Cluster:
    """A connection to Ray; see `connected_cluster`."""

    def __init__(self, ray: Any, *, is_own: bool) -> None:  # a module, imported late
        self.ray = ray
        self.is_own = is_own
        """Whether it was started for this run, so that no other machine will join it."""
        self.stopped = threading.Event()
        """Set by Ctrl-C, which only the main thread receives, for runs in other threads."""

    def size(self) -> ClusterSize:
        """Return the numbers of running machines, of their CPUs and of their GPUs."""
        resources_by_machine = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        cpus = [int(resources.get("CPU", 0)) for resources in resources_by_machine]
        gpus = sum(int(resources.get("GPU", 0)) for resources in resources_by_machine)
        return ClusterSize(
            len(resources_by_machine), sum(cpus), gpus, min((n for n in cpus if n), default=1)
        )


@contextmanager
def connected_cluster(*, start: bool = True) -> Iterator[Cluster]:
    """Yield a connection to the cluster at `RAY_ADDRESS`, else to a cluster of this machine.

    If there is none, one is started here. Ray sends no usage statistics and opens no dashboard.
    Raise OptionError if Ray is not installed, if no cluster answers at `RAY_ADDRESS`, or if there
    is none and `start` is False.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Hides the GPUs from processes that request none, which will be Ray's default.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray: Any = importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise OptionError(RAY_MISSING_MESSAGE) from error
    # Even without `log_to_driver`, Ray prints dead machines and the state of its processes to
    # standard output; the run itself reports what matters.
    vars(importlib.import_module("ray._private.worker"))["_worker_logs_enabled"] = False
    log_settings = {"log_to_driver": False, "logging_level": "CRITICAL"}
    is_own, old_handler = False, signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=os.environ.get(ADDRESS_VARIABLE) or "auto", **log_settings)
    except ConnectionError as error:
        if os.environ.get(ADDRESS_VARIABLE):
            address = os.environ[ADDRESS_VARIABLE]
            msg = f"{ADDRESS_VARIABLE}={address}: no Ray cluster answers at this address: {error}"
            raise OptionError(" ".join(msg.split())) from error
        if not start:
            msg = "no Ray cluster was found: run `ray start --head`, or set RAY_ADDRESS"
            raise OptionError(msg) from error
        is_own = True
        ray.init(address="local", num_cpus=processors(), include_dashboard=False, **log_settings)
    signal.signal(signal.SIGTERM, old_handler)  # Ray's handler would end the process at once
    try:
        yield Cluster(ray, is_own=is_own)
    finally:
        ray.shutdown()
