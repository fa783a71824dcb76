"""Properties of the environment: device, weights file, network."""

import sys
from collections.abc import Sequence
from typing import Any

from reference_harness.extractors.checkpoint_keys import allowed_keys, unexplained, untied
from reference_harness.loading import locate

from .hooks import torch_modules
from .probes import dna
from .result import BrokenError
from .subject import Subject, call

_SHOWN = 3


def device(subject: Subject) -> str:
    """Check that it is built, embeds, and keeps its tensors on the device asked for."""
    asked = subject.device
    example = f"{subject.spec}(name_model=..., device={asked!r}).{call([dna(12)], 1)}"
    try:
        loaded = subject.load(asked)
        subject.embed([dna(12)], 1, on=loaded.extractor)
    except BrokenError:
        raise
    except Exception as error:
        msg = f"it fails on device {asked!r}: {type(error).__name__}: {error}"
        raise BrokenError(msg, example) from error
    tensors = 0
    for name, module in torch_modules(loaded.extractor):
        for tensor in (*module.parameters(), *module.buffers()):
            tensors += 1
            where = str(tensor.device)
            if where != asked and where.partition(":")[0] != asked:
                msg = f"device {asked!r} was asked for, and its {name} has a tensor on {where!r}"
                raise BrokenError(msg, example)
    held = f", its {tensors} tensors included" if tensors else ""
    return f"It runs on {asked}{held}."


class WeightsWatch:
    """Records missing and unused weights of every load, by transformers or torch."""

    def __init__(self, subject: Subject) -> None:
        self.faults: list[str] = []
        self.blind = ""
        text = locate(subject.spec, subject.folder).read_text("utf-8", errors="replace")
        builtin = subject.spec.removeprefix("builtin:") == "huggingface"
        self.may_miss, self.may_leave = allowed_keys(subject.options if builtin else {})
        if builtin or "transformers" in text:
            self._watch_transformers()
        if builtin or "torch" in text:
            self._watch_torch()

    def verdict(self, subject: Subject) -> str:
        """Load once more and report."""
        self.faults.clear()
        subject.load()
        if self.blind:
            raise BrokenError(self.blind)
        if self.faults:
            msg = (
                f"{'; '.join(dict.fromkeys(self.faults))}: those layers hold random numbers; "
                "build the class the checkpoint was saved from (trust_remote_code, or another "
                "Auto class)"
            )
            raise BrokenError(msg, f"{subject.spec}(name_model={subject.name_model!r})")
        return "Every weight of the model is in its file, and every weight of the file is used."

    def _note(self, where: str, missing: Sequence[str], left_over: Sequence[str]) -> None:
        for what, keys in (
            ("missing from", unexplained(missing, self.may_miss)),
            ("left over in", unexplained(left_over, self.may_leave)),
        ):
            if keys:
                more = ", ..." if len(keys) > _SHOWN else ""
                self.faults.append(
                    f"{len(keys)} weights are {what} the file of {where} "
                    f"({', '.join(keys[:_SHOWN])}{more})"
                )

    def _watch_transformers(self) -> None:
        import transformers.modeling_utils as theirs  # seconds, for those who use it

        inner = getattr(theirs, "log_state_dict_report", None)
        if inner is None:
            self.blind = (
                "this version of transformers does not show what a load left missing: install "
                "transformers 5"
            )
            return

        def report(*args: Any, **keywords: Any) -> None:
            info = keywords["loading_info"]
            name = type(keywords["model"]).__name__
            missing = untied(keywords["model"], info.missing_keys)
            self._note(name, missing, sorted(info.unexpected_keys))
            inner(*args, **keywords)

        theirs.log_state_dict_report = report  # type: ignore[attr-defined]

    def _watch_torch(self) -> None:
        from torch.nn import Module  # seconds, for those who use it

        inner = Module.load_state_dict

        def load_state_dict(module: Any, *args: Any, **keywords: Any) -> Any:
            found = inner(module, *args, **keywords)
            self._note(type(module).__name__, found.missing_keys, found.unexpected_keys)
            return found

        Module.load_state_dict = load_state_dict  # type: ignore[method-assign,assignment]


class NetworkBlock:
    """Blocks and records every network connection of this process.

    It only affects Python's sockets, not child processes and native libraries: it finds mistakes,
    it does not stop an attacker.
    """

    EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")

    def __init__(self) -> None:
        self.attempts: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in self.EVENTS:
            target = [a for a in arguments if isinstance(a, str | bytes | tuple)]
            self.attempts.append(f"{event.partition('.')[2]} {target}")
            msg = "the network is blocked while an extractor is checked"
            raise ConnectionRefusedError(msg)

    def verdict(self, subject: Subject) -> str:
        """Load and embed, and report what was tried."""
        try:
            loaded = subject.load()
            subject.embed([dna(12)], 1, on=loaded.extractor)
        except BrokenError:
            raise
        except Exception as error:
            tried = f" after {self.attempts[0]}" if self.attempts else ""
            msg = (
                f"without a network it fails{tried}: {error}; fetch the weights before the run and "
                "load them from a folder or the cache"
            )
            raise BrokenError(msg, call([dna(12)], 1)) from error
        if self.attempts:
            msg = f"it tries the network ({self.attempts[0]}): remove that call"
            raise BrokenError(msg, call([dna(12)], 1))
        return "It loads and embeds with the network blocked, and tries no connection."
