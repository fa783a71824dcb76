"""What comes in and goes out of the Hub of the tests: requests taken apart, answers, refusals."""

import json
from dataclasses import dataclass
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""

OTHER = "other"
"""What the client asks on its own account, such as for a list of programs: no answer here."""

_FIXED = {
    "/api/whoami-v2": "whoami",
    "/api/validate-yaml": "validate-yaml",
    "/api/repos/create": "create",
    "/oauth/token": "exchange",
    "/identity": "identity",
}
_BY_RESOURCE = {"lfs": "lfs-put", "served": "served"}
"""First part of an address whose second is a repository; `served` stands for a Space's host."""


@dataclass
class Call:
    """One request, taken apart."""

    token: str
    resource: str
    name: str
    revision: str
    path: str
    query: dict[str, list[str]]
    body: bytes
    range: str = ""
    """The Range header."""


class Refusal(Exception):  # noqa: N818 (an answer like any other)
    """An answer that is an error."""

    def __init__(self, status: int, **headers: str) -> None:
        self.answer = (status, {k.replace("_", "-"): v for k, v in headers.items()}, b"{}")


def as_json(value: Any) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def route(path: str) -> tuple[str, str, str, str, str]:
    """Return step, resource, name, revision and path in the repository of an address."""
    if path in _FIXED:
        return _FIXED[path], "", "", "main", ""
    parts = path.strip("/").split("/")
    if parts[0] in _BY_RESOURCE:
        return _BY_RESOURCE[parts[0]], "/".join(parts[1:4]), "", "main", "/".join(parts[4:])
    if parts[0] == "api" and (parts[1] == "jobs" or len(parts) < 4):
        step = {"jobs": "jobs"}.get(parts[1], OTHER)
        step = "hardware" if parts[-1] == "hardware" else step
        return step, "", parts[2] if len(parts) > 2 else "", "main", "/".join(parts[3:])
    if parts[0] == "api":
        kind, owner, repo, *rest = parts[1:]
        name = f"{owner}/{repo}"
        step = {"revision": "info", "": "info"}.get(rest[0] if rest else "", (rest or [""])[0])
        revision = rest[1] if len(rest) > 1 else "main"
        return step, f"{kind}/{name}", name, revision, "/".join(rest[2:])
    if parts[2] == "resolve":  # models have no kind in their addresses
        parts.insert(0, "models")
    kind, owner, repo, *rest = parts
    name = f"{owner}/{repo.removesuffix('.git')}"
    if repo.endswith(".git"):
        return "lfs-batch", f"{kind}/{name}", name, "main", ""
    return "resolve", f"{kind}/{name}", name, rest[1], "/".join(rest[2:])
