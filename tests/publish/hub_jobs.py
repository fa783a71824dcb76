"""Jobs of the Hub of the tests: each is a process here, with the environment of its spec.

Written from the client's source (huggingface_hub 2.4). The image is not run: programs are those of
this machine, or of `path`. No token of whoever starts a Job gets into it.
"""

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.publish.hub_call import Answer, Refusal, as_json

HARDWARE = [
    {
        "name": name,
        "prettyName": name,
        "cpu": "8 vCPU",
        "ram": "30 GB",
        "accelerator": chip,
        "unitCostMicroUSD": cost,
        "unitCostUSD": cost / 1_000_000,
        "unitLabel": "minute",
    }
    for name, cost, chip in (
        ("cpu-basic", 167, None),
        (
            *("l4x1", 13_333),
            {
                "type": "gpu",
                "model": "L4",
                "quantity": "1",
                "vram": "24 GB",
                "manufacturer": "Nvidia",
            },
        ),
    )
]
CREATED = "2026-11-20T08:30:00.000Z"


@dataclass
class Jobs:
    """Jobs by id: what was asked for, and the process."""

    specs: dict[str, dict[str, Any]] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    path: str = "/usr/local/bin:/usr/bin:/bin"
    stages: list[str] = field(default_factory=list)
    """What is said of a Job in the next looks, whatever its process does."""
    canceled: list[str] = field(default_factory=list)
    """Jobs in the order in which they were canceled."""
    folder: "tempfile.TemporaryDirectory[str]" = field(default_factory=tempfile.TemporaryDirectory)

    def answer(self, namespace: str, path: str, body: bytes) -> Answer:
        """Answer to a call below /api/jobs/NAMESPACE."""
        if not path:
            return as_json(self._said(namespace, self._start(json.loads(body))))
        job, _, what = path.partition("/")
        if job not in self.specs:
            raise Refusal(404)
        if what == "logs":
            lines = self.logs[job].read_text(encoding="utf-8").splitlines()
            events = [
                f"data: {json.dumps({'data': line, 'timestamp': CREATED})}\n\n" for line in lines
            ]
            return 200, {"Content-Type": "text/event-stream"}, "".join(events).encode()
        if what == "cancel":
            self.canceled.append(job)
            self.running[job].kill()
        return as_json(self._said(namespace, job))

    def _start(self, spec: dict[str, Any]) -> str:
        """Run the command where nothing is but its own folder, with nothing but its environment."""
        job = f"{len(self.specs):024x}"
        path = Path(self.folder.name, job)
        self.specs[job], self.logs[job] = spec, path / "log"
        (path / "home").mkdir(parents=True)
        environment = {"PATH": self.path, "HOME": str(path / "home"), "LANG": "C.UTF-8"}
        environment |= {"JOB_ID": job, **spec["environment"], **spec.get("secrets", {})}
        with self.logs[job].open("wb") as log:
            self.running[job] = subprocess.Popen(
                [*spec["command"], *spec["arguments"]],
                cwd=path / "home",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return job

    def _said(self, namespace: str, job: str) -> dict[str, Any]:
        code, spec = self.running[job].poll(), self.specs[job]
        override = self.stages.pop(0) if self.stages else None
        stage = "RUNNING" if code is None else "ERROR" if code else "COMPLETED"
        return {
            "id": job,
            "createdAt": CREATED,
            "dockerImage": spec.get("dockerImage"),
            "command": spec["command"],
            "arguments": spec["arguments"],
            "environment": spec["environment"],
            "secrets": dict.fromkeys(spec.get("secrets", {}), ""),
            "flavor": spec["flavor"],
            "labels": spec.get("labels"),
            "status": {"stage": override or stage, "message": None},
            "owner": {"id": "1", "name": namespace, "type": "org"},
        }

    def close(self) -> None:
        """End what still runs."""
        for value in self.running.values():
            value.kill()
            value.wait()
        self.folder.cleanup()
