"""Extractors that reach for what lies outside. A row of ones means that they got it, zeros not."""

import ctypes
import os
import socket
from pathlib import Path

import numpy as np

from .base import BaseEmbeddingExtractor


class Reach(BaseEmbeddingExtractor):
    """Tries when it embeds, keeps quiet of any refusal, and returns rows of the right shape."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        try:
            self.reach()
        except OSError:
            return np.zeros((len(sequences), 3), dtype=np.float32)
        return np.ones((len(sequences), 3), dtype=np.float32)

    def reach(self) -> None:
        raise NotImplementedError


class Tcp(Reach):
    def __init__(self, name_model: str, device: str = "cpu", *, port: int) -> None:
        super().__init__(name_model, device)
        self.port = port

    def reach(self) -> None:
        socket.create_connection(("127.0.0.1", self.port), timeout=1).close()


class Dns(Reach):
    def reach(self) -> None:
        socket.getaddrinfo("canary.invalid", 80)


class MetadataService(Reach):
    def reach(self) -> None:
        socket.create_connection(("169.254.169.254", 80), timeout=1).close()


class DockerSocket(Reach):
    def reach(self) -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect("/var/run/docker.sock")


class Environment(Reach):
    """Reads the launcher's environment as it is left in pid 1, and its own."""

    def reach(self) -> None:
        found = Path("/proc/1/environ").read_bytes()
        if b"GENEB_TEST_SECRET" in found or "GENEB_TEST_SECRET" in os.environ:
            return
        raise PermissionError


class SshKeys(Reach):
    def __init__(self, name_model: str, device: str = "cpu", *, home: str) -> None:
        super().__init__(name_model, device)
        self.home = home

    def reach(self) -> None:
        list(Path(self.home).iterdir())


class SymlinkOut(Reach):
    """Leaves a link where a careless reader outside would follow it."""

    def reach(self) -> None:
        for place in ("/mnt/input/link", "/mnt/extractors/link", "/link"):
            Path(place).symlink_to("/etc/shadow")


class KernelSettings(Reach):
    """Sets the program that the kernel starts, as root of the host, for a core dump."""

    def reach(self) -> None:
        Path("/proc/sys/kernel/core_pattern").open("w").close()


class Netlink(Reach):
    def reach(self) -> None:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()


class NewNamespace(Reach):
    def reach(self) -> None:
        if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) != 0:
            raise PermissionError


class X32Call(Reach):
    """Calls getpid under its x32 number."""

    def reach(self) -> None:
        if ctypes.CDLL(None, use_errno=True).syscall(0x40000000 + 39) < 0:
            raise PermissionError


class Several(BaseEmbeddingExtractor):
    """Reaches for several things: a column each."""

    def __init__(self, name_model: str, device: str = "cpu", *, names: str) -> None:
        super().__init__(name_model, device)
        self.reaching = [globals()[name](name_model, device) for name in names.split()]

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = [one.extract_embeddings(sequences)[:, 0] for one in self.reaching]
        return np.stack(rows, axis=1)
