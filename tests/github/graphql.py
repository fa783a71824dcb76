"""GitHub's GraphQL API on loopback, for the queries that we send and no others.

Each field is answered by what REST would answer, so that a fault of a resource is a fault of its
field: the field is null then, as on GitHub.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.github.refusals import Answer
    from tests.github.server import GitHubServer

_FIELD = re.compile(
    r"(\w+): (object|pullRequest)\((?:oid: \"([0-9a-f]{40})\"|number: (\d+))\) \{ \.\.\.(\w+) \}"
)
_CLOSED = re.compile(
    r"(\w+): pullRequests\(states: CLOSED, first: (\d+), "
    r"orderBy: {field: UPDATED_AT, direction: DESC}\) { ...(Gone) }"
)
_REPOSITORY = re.compile(
    r'query \{ repository\(owner: "([^"]+)", name: "([^"]+)"\) \{ (.*?) \} \} fragment '
)
VERDICT = "geneb/verdict"
TEXT_MAX = 512_000  # GitHub leaves out the text of a larger file


def graphql(server: "GitHubServer", query: str) -> dict[str, Any] | None:
    """Answer a query; None where it is not one of ours."""
    match = _REPOSITORY.match(query)
    if match is None or "/".join(match.groups()[:2]).casefold() != server.name.casefold():
        return None
    fields = {}
    for alias, _kind, oid, number, fragment in _FIELD.findall(match[3]):
        assert f"fragment {fragment} on " in query
        fields[alias] = _ANSWERS[fragment](server, oid or number, query)
    for alias, first, fragment in _CLOSED.findall(match[3]):
        assert f"fragment {fragment} on PullRequestConnection" in query
        fields[alias] = {"nodes": _closed(server, int(first))}
    assert len(fields) == match[3].count("...")
    return {"data": {"repository": fields}}


def _rest(server: "GitHubServer", path: str, **query: str) -> "Answer | None":
    """Ask as REST would be asked, without being charged; None where that fails."""
    from tests.github.server import REPOSITORY

    target = f"/repos/{REPOSITORY}{path}"
    fault = next((f for f in server.faults if server._hits(f, "GET", target)), None)
    if fault is not None:
        fault.times -= 1
        return None
    answer = server._route("GET", target, query, None)
    return answer if answer.status == 200 else None


def _first(query: str, name: str) -> int:
    return int(re.search(rf"{name}\(first: (\d+)\)", query)[1])  # type: ignore[index]


def _last(query: str) -> int:
    return int(re.search(r"latest: comments\(last: (\d+)\)", query)[1])  # type: ignore[index]


def _talk(server: "GitHubServer", number: str, query: str) -> dict[str, Any] | None:
    size = _first(query, "comments")
    found = _rest(server, f"/issues/{number}/comments", per_page=str(size))
    pull = _rest(server, f"/pulls/{number}")
    if found is None or pull is None or not (pull.body["head"] or {}).get("sha"):
        return None
    said = [
        {
            "databaseId": comment["id"],
            "body": comment["body"],
            "author": comment["user"]
            and {"databaseId": comment["user"]["id"], "login": comment["user"].get("login", "")},
        }
        for comment in [*found.body, *server.comments[int(number)][-_last(query) :]]
    ]
    said, latest = said[: len(found.body)], said[len(found.body) :]
    return _headed(server, pull.body) | {
        "state": str(pull.body["state"]).upper(),
        "locked": pull.body.get("locked", False),
        "labels": {"nodes": pull.body["labels"]},
        "comments": {"totalCount": len(server.comments[int(number)]), "nodes": said},
        "latest": {"nodes": latest},
    }


def _headed(server: "GitHubServer", pull: dict[str, Any]) -> dict[str, Any]:
    head = pull["head"]["sha"]
    found = _rest(server, f"/commits/{head}/statuses", per_page="100")
    ours = [one for one in found.body if one["context"] == VERDICT] if found else []
    states = [one["state"].upper() for one in ours]
    contexts = {"context": {"state": states[0]}} if states else None
    return {
        "number": pull["number"],
        "headRefOid": head,
        "commits": {"nodes": [{"commit": {"oid": head, "status": contexts}}]},
    }


def _closed(server: "GitHubServer", first: int) -> list[dict[str, Any]]:
    """List the closed pull requests that were not merged, the last updated first."""
    found = [
        pull
        for pull in server.pulls.values()
        if pull["state"] == "closed" and not pull.get("merged_at")
    ]
    found.sort(key=lambda pull: (pull["updated_at"], pull["number"]), reverse=True)
    return [_headed(server, pull) for pull in found[:first]]


def _history(server: "GitHubServer", oid: str, query: str) -> dict[str, Any] | None:
    from tests.github.server import REPOSITORY

    main = server.main_sha()
    target = f"/repos/{REPOSITORY}/compare/{main}...{oid}"
    if any(server._hits(fault, "GET", target) for fault in server.faults):
        return None
    line = [sha for sha in server.ancestors(oid) if sha in server.commits]
    if not line:
        return None
    nodes = [
        {
            "oid": sha,
            "tree": {"oid": server.commits[sha][0]},
            "parents": {"totalCount": int(server.commits[sha][1] is not None)},
        }
        for sha in line[: _first(query, "history")]
    ]
    return {"history": {"nodes": nodes}}


def _file(server: "GitHubServer", oid: str, _query: str) -> dict[str, Any] | None:
    if _rest(server, f"/git/blobs/{oid}") is None:
        return None
    raw = server.lies.get(oid, server.blobs[oid])
    is_text = b"\0" not in raw and len(raw) <= TEXT_MAX
    return {"oid": oid, "text": raw.decode("utf-8", "replace") if is_text else None}


_ANSWERS = {"Talk": _talk, "History": _history, "Line": _history, "File": _file}
