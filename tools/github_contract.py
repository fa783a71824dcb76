"""Writes tests/github/contract/: the parts of GitHub's API descriptions that our tests use.

GitHub publishes its REST API as an OpenAPI description and its GraphQL API as a schema, both as npm
packages. `rest.json` is the part of the first that our server of the tests imitates, as JSON Schema
without descriptions and examples; `schema.graphql` is the part of the second. Needs npm.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from graphql import DocumentNode, NamedTypeNode, TypeDefinitionNode, parse, print_ast

from tools.npm import fetched

FOLDER = Path(__file__).resolve().parent.parent / "tests/github/contract"


class Package(NamedTuple):
    """One file of an npm package."""

    name: str
    version: str
    path: str
    sha256: str
    """Digest of the file."""

    def fetched(self) -> bytes:
        """Fetch the file with npm. Raises ValueError if it has another digest."""
        return fetched(self.name, self.version, {self.path: self.sha256})[0]


REST_PACKAGE = Package(
    "@octokit/openapi",
    "23.0.2",
    "generated/api.github.com.json",
    "829b4bebb19a53133289f7b0bc819f4f1118115821db2ca9f25e9ee995a7da2a",
)
GRAPHQL_PACKAGE = Package(
    "@octokit/graphql-schema",
    "15.26.1",
    "schema.graphql",
    "3c62d0526d133cee53221c89de9b455ade24db78b9e7ad56d642c4c15bce2654",
)
BOARD = "/repos/{owner}/{repo}"
OPERATIONS = {
    "": "GET PATCH",
    "/actions/permissions": "GET PUT",
    "/actions/permissions/fork-pr-contributor-approval": "GET PUT",
    "/actions/permissions/selected-actions": "GET PUT",
    "/actions/permissions/workflow": "GET PUT",
    "/actions/runners": "GET",
    "/actions/secrets/{secret_name}": "GET",
    "/actions/variables": "POST",
    "/actions/variables/{name}": "GET PATCH",
    "/actions/workflows": "GET",
    "/actions/workflows/{workflow_id}/enable": "PUT",
    "/actions/workflows/{workflow_id}/runs": "GET",
    "/branches/{branch}": "GET",
    "/codeowners/errors": "GET",
    "/collaborators": "GET",
    "/collaborators/{username}/permission": "GET",
    "/commits": "GET",
    "/commits/{ref}": "GET",
    "/commits/{ref}/statuses": "GET",
    "/compare/{basehead}": "GET",
    "/contents/{path}": "GET",
    "/environments/{environment_name}": "GET PUT",
    "/environments/{environment_name}/deployment-branch-policies": "GET POST",
    "/environments/{environment_name}/deployment-branch-policies/{branch_policy_id}": "DELETE",
    "/environments/{environment_name}/secrets/public-key": "GET",
    "/environments/{environment_name}/secrets/{secret_name}": "GET PUT",
    "/environments/{environment_name}/variables": "POST",
    "/environments/{environment_name}/variables/{name}": "GET PATCH",
    "/forks": "POST",
    "/git/blobs": "POST",
    "/git/blobs/{file_sha}": "GET",
    "/git/commits": "POST",
    "/git/commits/{commit_sha}": "GET",
    "/git/matching-refs/{ref}": "GET",
    "/git/refs": "POST",
    "/git/refs/{ref}": "PATCH",
    "/git/trees": "POST",
    "/git/trees/{tree_sha}": "GET",
    "/installation": "GET",
    "/issues": "GET POST",
    "/issues/comments/{comment_id}": "PATCH",
    "/issues/{issue_number}": "GET PATCH",
    "/issues/{issue_number}/comments": "GET POST",
    "/issues/{issue_number}/labels": "POST PUT",
    "/issues/{issue_number}/labels/{name}": "DELETE",
    "/labels": "GET POST",
    "/private-vulnerability-reporting": "GET PUT",
    "/pulls": "GET POST",
    "/pulls/{pull_number}": "GET PATCH",
    "/pulls/{pull_number}/merge": "PUT",
    "/rules/branches/{branch}": "GET",
    "/rulesets": "GET POST",
    "/rulesets/{ruleset_id}": "GET PUT",
    "/statuses/{sha}": "POST",
}
"""The endpoints of a repository that the tests' server imitates: path to methods."""
ELSEWHERE = {"/app-manifests/{code}/conversions": "POST", "/users/{username}": "GET"}
"""The other endpoints that the server imitates: path to methods."""
FIELDS = {
    "Query": "repository",
    "Repository": "object pullRequest pullRequests",
    "PullRequest": "number state locked headRefOid labels comments commits",
    "PullRequestConnection": "nodes",
    "PullRequestCommitConnection": "nodes",
    "PullRequestCommit": "commit",
    "LabelConnection": "nodes",
    "Label": "name",
    "IssueCommentConnection": "totalCount nodes",
    "IssueComment": "databaseId body author",
    "Actor": "login",
    "Bot": "login databaseId",
    "User": "login databaseId",
    "GitObject": "oid",
    "Blob": "oid text",
    "Commit": "oid status history tree parents",
    "CommitHistoryConnection": "nodes",
    "CommitConnection": "totalCount",
    "Tree": "oid",
    "Status": "context",
    "StatusContext": "state creator",
}
"""The fields that our queries ask for, by type."""
PROSE = frozenset(
    {
        *("description", "summary", "title", "example", "examples", "externalDocs"),
        *("tags", "x-github", "operationId"),
    }
)


def main() -> None:
    """Write rest.json and schema.graphql."""
    rest_text = by_line(pruned_rest(json.loads(REST_PACKAGE.fetched())))
    (FOLDER / "rest.json").write_text(rest_text, encoding="utf-8")
    graphql_text = pruned_graphql(GRAPHQL_PACKAGE.fetched().decode())
    (FOLDER / "schema.graphql").write_text(graphql_text, encoding="utf-8")


def pruned_rest(description: dict[str, Any]) -> dict[str, Any]:
    """Return the operations of `OPERATIONS` and `ELSEWHERE`, and the schemas they refer to."""
    operations: dict[str, dict[str, Any]] = {}
    paths = {BOARD + below: methods for below, methods in OPERATIONS.items()}
    for path, methods in (paths | ELSEWHERE).items():
        path_item = description["paths"][path]
        operations[path] = {
            method: {
                key: json_schema(value)
                for key, value in path_item[method.lower()].items()
                if key in {"parameters", "requestBody", "responses"}
            }
            for method in methods.split()
        }
    components: dict[str, dict[str, Any]] = {}
    waiting = sorted(references(operations))
    while waiting:
        _, _, kind, name = waiting.pop().split("/")
        if name not in components.setdefault(kind, {}):
            components[kind][name] = json_schema(description["components"][kind][name])
            waiting += sorted(references(components[kind][name]))
    return {
        "published": f"{REST_PACKAGE.name} {REST_PACKAGE.version}",
        "components": components,
        "operations": operations,
    }


def by_line(description: dict[str, Any]) -> str:
    """Return the description as JSON, with one line per operation and per component."""
    parts = []
    for member, groups in sorted(description.items()):
        if isinstance(groups, str):
            parts.append(f'"{member}": {json.dumps(groups)}')
            continue
        lines = [
            f'"{group}": {{\n'
            + ",\n".join(
                f'"{key}": {json.dumps(members[key], sort_keys=True)}' for key in sorted(members)
            )
            + "\n}"
            for group, members in sorted(groups.items())
        ]
        parts.append(f'"{member}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def references(value: Any) -> set[str]:
    """Return the values of `$ref` in a JSON value, at any depth."""
    if isinstance(value, list):
        return set().union(*map(references, value))
    if not isinstance(value, dict):
        return set()
    own_references = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own_references.union(*map(references, value.values()))


def json_schema(value: Any, *, is_names: bool = False) -> Any:
    """Return a value of OpenAPI 3.0 without prose, with `nullable` expressed in JSON Schema.

    With `is_names`, the keys of a mapping are names of members rather than keywords.
    """
    if isinstance(value, list):
        return [json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    keywords = {
        key: json_schema(item, is_names=not is_names and key in {"properties", "patternProperties"})
        for key, item in value.items()
        if is_names or key not in PROSE
    }
    if not is_names and keywords.pop("nullable", False) is True:
        return {"anyOf": [keywords, {"type": "null"}]}
    return keywords


def pruned_graphql(schema_text: str) -> str:
    """Return the types and fields of `FIELDS`, and the types of the fields and their arguments."""
    types: dict[str, Any] = {
        node.name.value: node
        for node in parse(schema_text, no_location=True).definitions
        if isinstance(node, TypeDefinitionNode)
    }
    reached: dict[str, Any] = {}
    waiting = list(FIELDS)
    while waiting:
        name = waiting.pop()
        if name in reached or name not in types:
            continue  # visited already, or a built-in scalar
        node = types[name]
        if name in FIELDS:
            fields = tuple(f for f in node.fields if f.name.value in FIELDS[name].split())
            if len(fields) < len(FIELDS[name].split()):
                raise SystemExit(f"GitHub's type {name} lacks some of these fields: {FIELDS[name]}")
            interfaces = tuple(i for i in node.interfaces or () if i.name.value in FIELDS)
            node = replace(node, fields=fields, interfaces=interfaces)
        reached[name] = without_prose(node)
        waiting += [type_name(part.type) for part in typed_members(node)]
    document = DocumentNode(definitions=tuple(reached[name] for name in sorted(reached)))
    head = f"# Of {GRAPHQL_PACKAGE.name} {GRAPHQL_PACKAGE.version}, what our queries ask for.\n\n"
    return head + print_ast(document) + "\n"


def typed_members(node: Any) -> Iterable[Any]:
    """Yield the fields of a type, each followed by its arguments; all of these have a type."""
    for member in getattr(node, "fields", None) or ():
        yield member
        yield from getattr(member, "arguments", None) or ()


def without_prose(node: Any) -> Any:
    """Return a definition without the descriptions of its parts."""
    children = {
        key: tuple(without_prose(part) for part in getattr(node, key))
        for key in ("fields", "values", "arguments")
        if getattr(node, key, None)
    }
    return replace(node, description=None, **children)


def type_name(node: Any) -> str:
    """Return the name of a type, without `!` and brackets."""
    while not isinstance(node, NamedTypeNode):
        node = node.type
    return str(node.name.value)


if __name__ == "__main__":
    main()
