"""GitHub as a recording has it: each request gets the answer that the real one gave.

`GENEB_GITHUB_LOG=exchange.jsonl geneb-ci ...` records: docs/maintainer/first-hour.md.
"""

import json
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from tests.github import published
from tests.github.refusals import Answer
from tests.github.server import GitHubServer

HEADERS = {"ETag", "Link", "Retry-After"}
"""Headers of an answer that the client acts on."""


class RecordedServer(GitHubServer):
    """A server that answers from a recording, in its order for each request."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.answers: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        for line in path.read_text(encoding="utf-8").splitlines():
            exchange = json.loads(line)
            self.answers[exchange["verb"], exchange["target"]].append(exchange)
        self.unrecorded: list[str] = []
        """Requests that the recording does not have."""

    def answer(self, verb: str, target: str, _token: str, raw: bytes) -> Answer:
        """Return what GitHub answered then; the last answer is repeated."""
        exchanges = self.answers[verb, target]
        if not exchanges:
            self.unrecorded.append(f"{verb} {target}")
            return Answer(404, {"message": "Not Found"})
        exchange = exchanges.popleft() if len(exchanges) > 1 else exchanges[0]
        self._compare(exchange, json.loads(raw) if raw else None)
        names = {name.casefold(): name for name in HEADERS}
        headers = {names[n]: v for n, v in exchange["headers"].items() if n in names}
        return Answer(exchange["status"], exchange["answer"], headers)

    def _compare(self, exchange: dict[str, Any], body: Any) -> None:
        """Note another body than the recorded one, and an answer that is not as published."""
        name = f"{exchange['verb']} {exchange['target']}"
        if body != exchange["body"]:
            self.unrecorded.append(f"{name}: another body than was recorded")
        path, _, _ = exchange["target"].partition("?")
        operation = published.find(exchange["verb"], path)
        if operation is not None:
            answer = exchange["answer"]
            self.faults_of_form += published.answer_faults(operation, exchange["status"], answer)
