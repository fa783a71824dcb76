"""GitHub's GraphQL API on loopback: any query of the published schema, as far as we use that.

A resource is what REST would answer, so that a fault of it is a fault of its field: the field is
null then, beside an error, as on GitHub.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    build_schema,
    execute_sync,
    parse,
    validate,
)

if TYPE_CHECKING:
    from tests.github.server import GitHubServer

Node = dict[str, Any]
TEXT_MAX = 512_000  # GitHub leaves out the text of a larger file


@cache
def published() -> GraphQLSchema:
    """Return the part of GitHub's schema that our queries ask for."""
    path = Path(__file__).with_name("contract") / "schema.graphql"
    return build_schema(path.read_text(encoding="utf-8"))


def graphql(server: "GitHubServer", query: str) -> Node:
    """Answer a query: its data, and an error for each field that is null instead."""
    # Queries of one form differ in numbers and commit ids: one of them is checked.
    if errors := _errors(re.sub(r'(?<=")[0-9a-f]{40}(?=")|\d+', "0", query)):
        return {"errors": errors}
    return dict(
        execute_sync(published(), _parsed(query), server, field_resolver=_resolve).formatted
    )


@lru_cache(maxsize=64)
def _parsed(query: str) -> DocumentNode:
    return parse(query, no_location=True)


@cache
def _errors(query: str) -> list[Any]:
    return [error.formatted for error in validate(published(), parse(query))]


def _resolve(source: Any, info: GraphQLResolveInfo[Any], **arguments: Any) -> Any:
    resolver = _RESOLVERS.get(f"{info.parent_type.name}.{info.field_name}")
    if resolver is None:
        return source.get(info.field_name)
    argument_names = {argument.name.value for argument in info.field_nodes[0].arguments or ()}
    return resolver(info.root_value, source, **{name: arguments[name] for name in argument_names})


def _repository(server: "GitHubServer", _: Any, owner: str, name: str) -> Node:
    if f"{owner}/{name}".casefold() != server.name.casefold():
        raise GraphQLError(f"Could not resolve to a Repository with the name '{owner}/{name}'.")
    return {}


def _rest(server: "GitHubServer", path: str, **query: str) -> Any:
    """Ask as REST would be asked, without being charged. Raises GraphQLError where that fails."""
    from tests.github.server import REPOSITORY

    target = f"/repos/{REPOSITORY}{path}"
    fault = next((f for f in server.faults if server._hits(f, "GET", target)), None)
    if fault is not None:
        fault.times -= 1
        raise GraphQLError("Something went wrong while executing your query.")
    answer = server._route("GET", target, query, None)
    if answer.status != 200:
        raise GraphQLError("Could not resolve to a node.")
    return answer.body


def _object(server: "GitHubServer", _: Node, oid: str) -> Node | None:
    if oid in server.commits:
        return {"__typename": "Commit", "oid": oid}
    return {"__typename": "Blob", "oid": oid} if oid in server.blobs else None


def _text(server: "GitHubServer", blob: Node) -> str | None:
    _rest(server, f"/git/blobs/{blob['oid']}")
    raw = server.lies.get(blob["oid"], server.blobs[blob["oid"]])
    return raw.decode("utf-8", "replace") if b"\0" not in raw and len(raw) <= TEXT_MAX else None


def _history(server: "GitHubServer", commit: Node, first: int) -> Node:
    from tests.github.server import REPOSITORY

    target = f"/repos/{REPOSITORY}/compare/{server.main_sha()}...{commit['oid']}"
    if any(server._hits(fault, "GET", target) for fault in server.faults):
        raise GraphQLError("Something went wrong while executing your query.")
    line = [sha for sha in server.ancestors(commit["oid"]) if sha in server.commits]
    return {"nodes": [{"oid": sha} for sha in line[:first]]}


def _tree(server: "GitHubServer", commit: Node) -> Node:
    return {"oid": server.commits[commit["oid"]][0]}


def _parents(server: "GitHubServer", commit: Node, first: int) -> Node:
    parents = [server.commits[commit["oid"]][1], server.merges.get(commit["oid"])]
    return {"totalCount": len([sha for sha in parents if sha][:first])}


def _pull(server: "GitHubServer", _: Any, number: int) -> Node:
    pull = _rest(server, f"/pulls/{number}")
    if not (pull["head"] or {}).get("sha"):
        raise GraphQLError("Something went wrong while executing your query.")
    return _headed(pull) | {
        "state": str(pull["state"]).upper(),
        "locked": pull.get("locked", False),
        "labels": pull["labels"],
    }


def _headed(pull: Node) -> Node:
    return {"number": pull["number"], "headRefOid": pull["head"]["sha"]}


def _closed(server: "GitHubServer", _: Node, first: int, states: list[str], **order: Any) -> Node:
    """List the closed pull requests that were not merged, the last updated first."""
    assert (states, order) == (
        ["CLOSED"],
        {"orderBy": {"field": "UPDATED_AT", "direction": "DESC"}},
    )
    pulls = [
        pull
        for pull in server.pulls.values()
        if pull["state"] == "closed" and not pull.get("merged_at")
    ]
    pulls.sort(key=lambda pull: (pull["updated_at"], pull["number"]), reverse=True)
    return {"nodes": [_headed(pull) for pull in pulls[:first]]}


def _labels(_: "GitHubServer", pull: Node, first: int) -> Node:
    return {"nodes": pull["labels"] and pull["labels"][:first]}


def _comments(server: "GitHubServer", pull: Node, first: int = 0, last: int = 0) -> Node:
    number = pull["number"]
    if first:
        comments = _rest(server, f"/issues/{number}/comments", per_page=str(first))
    else:
        comments = server.comments[number][-last:]
    nodes = [
        {"databaseId": comment["id"], "body": comment["body"], "author": _author(comment["user"])}
        for comment in comments
    ]
    return {"totalCount": len(server.comments[number]), "nodes": nodes}


def _author(user: Node | None) -> Node | None:
    """Return who wrote a comment or set a status: null, where the account is deleted."""
    if user is None:
        return None
    login = str(user.get("login", ""))
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {
        "__typename": kind,
        "databaseId": user["id"],
        "login": login.removesuffix("[bot]"),  # of REST alone
    }


def _tip(_: "GitHubServer", pull: Node, last: int) -> Node:
    assert last == 1
    return {"nodes": [{"commit": {"oid": pull["headRefOid"]}}]}


def _status(server: "GitHubServer", commit: Node) -> Node | None:
    statuses = _rest(server, f"/commits/{commit['oid']}/statuses", per_page="100")
    return {"statuses": statuses} if statuses else None


def _context(_: "GitHubServer", status: Node, name: str) -> Node | None:
    status_found = next((s for s in status["statuses"] if s["context"] == name), None)
    if status_found is None:
        return None
    return {"state": status_found["state"].upper(), "creator": _author(status_found.get("creator"))}


_RESOLVERS: dict[str, Callable[..., Any]] = {
    "Query.repository": _repository,
    "Repository.object": _object,
    "Repository.pullRequest": _pull,
    "Repository.pullRequests": _closed,
    "Blob.text": _text,
    "Commit.history": _history,
    "Commit.tree": _tree,
    "Commit.parents": _parents,
    "Commit.status": _status,
    "Status.context": _context,
    "PullRequest.comments": _comments,
    "PullRequest.commits": _tip,
    "PullRequest.labels": _labels,
}
