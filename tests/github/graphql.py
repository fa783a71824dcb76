"""GitHub's GraphQL API on loopback, for the queries that we send and no others.

Each field is answered by what REST would answer, so that a fault of a resource is a fault of its
field: the field is null then, as on GitHub.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.github.server import Answer, GitHubServer

_FIELD = re.compile(
    r"(\w+): (object|pullRequest)\((?:oid: \"([0-9a-f]{40})\"|number: (\d+))\) \{ \.\.\.(\w+) \}"
)
_REPOSITORY = re.compile(
    r'query \{ repository\(owner: "([^"]+)", name: "([^"]+)"\) \{ (.*?) \} \} fragment '
)
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
    if found is None or pull is None:
        return None
    said = [
        {
            "databaseId": comment["id"],
            "body": comment["body"],
            "author": comment["user"]
            and {"databaseId": comment["user"]["id"], "login": comment["user"].get("login", "")},
            "authorAssociation": comment.get("author_association", "NONE"),
        }
        for comment in [*found.body, *server.comments[int(number)][-_last(query) :]]
    ]
    said, latest = said[: len(found.body)], said[len(found.body) :]
    recent = [
        {"databaseId": one["id"], "authorAssociation": one.get("author_association", "NONE")}
        for one in server.comments[int(number)][-100:]
    ]
    head = pull.body["head"]["sha"]
    found_states = _rest(server, f"/commits/{head}/statuses", per_page="100")
    states = [s["state"].upper() for s in found_states.body] if found_states else []
    contexts = {"context": {"state": states[0]}} if states else None
    return {
        "number": int(number),
        "state": pull.body["state"].upper(),
        "locked": pull.body.get("locked", False),
        "headRefOid": head,
        "labels": {"nodes": [{"name": label["name"]} for label in pull.body["labels"]]},
        "comments": {"totalCount": len(server.comments[int(number)]), "nodes": said},
        "latest": {"nodes": latest},
        "recent": {"nodes": recent},
        "commits": {"nodes": [{"commit": {"oid": head, "status": contexts}}]},
    }


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
