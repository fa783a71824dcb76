"""Check that the extractor computes on the requested device and needs no network."""

import sys
from typing import Any

from reference_harness.extractors.base import SignatureError

from .hooks import torch_modules
from .result import BrokenError, UnverifiedError
from .sequences import random_letters
from .subject import Subject, call_code

DEVICE_LIBRARIES = ("torch", "jax", "tensorflow", "onnxruntime", "cupy", "mxnet", "tinygrad")
"""Libraries that can compute on other devices than the CPU."""


def device(subject: Subject) -> str:
    """Check that the extractor can be built, and embeds with all tensors on the device."""
    requested = subject.device
    example = (
        f"{subject.spec}(name_model=..., device={requested!r}).{call_code([random_letters(12)], 1)}"
    )
    try:
        loaded = subject.load(requested)
        subject.embed([random_letters(12)], 1, on=loaded.extractor)
    except (BrokenError, SignatureError):
        raise
    except Exception as error:
        msg = f"the extractor fails on device {requested!r}: {type(error).__name__}: {error}"
        raise BrokenError(msg, example) from error
    tensor_count = 0
    for module_name, module in torch_modules(loaded.extractor):
        for tensor in (*module.parameters(), *module.buffers()):
            tensor_count += 1
            tensor_device = str(tensor.device)
            if tensor_device != requested and tensor_device.partition(":")[0] != requested:
                msg = (
                    f"the extractor was built for device {requested!r}, but its module "
                    f"{module_name} has a tensor on {tensor_device!r}: move every tensor to the "
                    "device"
                )
                raise BrokenError(msg, example)
    if tensor_count:
        return f"The extractor runs on {requested}, its {tensor_count} tensors included."
    device_libraries = [name for name in DEVICE_LIBRARIES if name in sys.modules]
    if requested == "cpu" and not device_libraries:
        return "The extractor runs on cpu: no library that can use another device is loaded."
    msg = (
        f"The extractor accepts device {requested!r} and embeds, but where it computes cannot be "
        "verified: no tensor of a torch module is visible."
    )
    raise UnverifiedError(msg)


class NetworkBlock:
    """Blocks and records every network connection of this process.

    It affects Python's sockets, not child processes and native libraries, so it finds mistakes and
    does not stop an attacker.
    """

    EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
    """Events of Python's audit hook that a network connection raises."""

    def __init__(self) -> None:
        """Block the network from now on, until the process ends."""
        self.attempts: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record and refuse a network connection."""
        if event in self.EVENTS:
            addresses = [a for a in arguments if isinstance(a, str | bytes | tuple)]
            self.attempts.append(f"{event.partition('.')[2]} {addresses}")
            msg = "the network is blocked while an extractor is checked"
            raise ConnectionRefusedError(msg)

    def check(self, subject: Subject) -> str:
        """Return a sentence if the extractor loads and embeds without trying the network.

        Raise BrokenError otherwise.
        """
        try:
            loaded = subject.load()
            subject.embed([random_letters(12)], 1, on=loaded.extractor)
        except BrokenError:
            raise
        except Exception as error:
            attempt_text = f" after {self.attempts[0]}" if self.attempts else ""
            msg = (
                f"without a network, the extractor fails{attempt_text}: {error}; fetch the weights "
                "before the run and load them from a folder or the cache"
            )
            raise BrokenError(msg, call_code([random_letters(12)], 1)) from error
        if self.attempts:
            msg = f"the extractor tries the network ({self.attempts[0]}): remove that call"
            raise BrokenError(msg, call_code([random_letters(12)], 1))
        return (
            "The extractor loads and embeds with the network blocked, and no attempt to connect "
            "was seen."
        )
