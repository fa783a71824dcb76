"""The tests' server is held against what GitHub publishes: each kind of deviation is noticed."""

from typing import Any

import pytest
import requests

from tests.github import published
from tests.github.graphql import graphql
from tests.github.refusals import Answer
from tests.github.server import NUMBERED, REPOSITORY, TOKEN, GitHubServer
from tests.github.serving import serving
from tests.github.settings_server import OBJECT, PERMISSIONS, SettingsServer

BOARD = f"/repos/{REPOSITORY}"


class Wrong(GitHubServer):
    """A server that answers one request as GitHub never does."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.given = answer

    def _route(self, *_request):
        return Answer(self.given.status, self.given.body)


def ask(server: GitHubServer, path: str, body: Any = None, verb: str = "GET") -> requests.Response:
    """Send a request, as some client might; return the answer."""
    headers = {"Authorization": f"token {TOKEN}"}
    return requests.request(verb, server.address + path, json=body, headers=headers, timeout=9)


@pytest.mark.parametrize(
    ("path", "body", "verb", "due"),
    [
        ("/issues?creators=x&per_page=9&sort=created&direction=asc&state=open", None, "GET",
         "there is no parameter creators"),
        ("/pulls?state=opened&per_page=9&sort=updated&direction=desc", None, "GET",
         "the parameter state cannot be 'opened'"),
        ("/issues", {"body": "no title"}, "POST", '"title" is a required property'),
        ("/issues", {"title": "a", "body": "b", "label": ["c"]}, "POST",
         "the body has an unknown member label"),
        ("/issues", {"title": "a", "body": 5}, "POST", '5 is not of type "string"'),
    ],
)  # fmt: skip
def test_a_request_that_github_does_not_describe_fails_the_test_that_sends_it(
    path, body, verb, due
):
    server = Wrong(Answer(404))
    with pytest.raises(AssertionError) as raised, serving(server):
        ask(server, BOARD + path, body, verb)
    assert due in str(raised.value)


@pytest.mark.parametrize(
    ("path", "answer", "due"),
    [
        ("/pulls/1", Answer(200, {"number": "one"}), '/number: "one" is not of type "integer"'),
        ("/commits/HEAD", Answer(200, {"sha": None}), '/sha: null is not of type "string"'),
        ("/pulls/1", Answer(202, {}), "it never answers 202"),
        ("/a-new-part", Answer(200, {}), "GitHub publishes no operation GET"),
    ],
)
def test_an_answer_that_github_never_gives_fails_the_test_that_reads_it(path, answer, due):
    server = Wrong(answer)
    with pytest.raises(AssertionError) as raised, serving(server):
        ask(server, BOARD + path)
    assert due in str(raised.value)


def test_a_query_is_answered_as_the_schema_has_it():
    server = GitHubServer()
    owner, name = REPOSITORY.split("/")
    query = 'query {{ repository(owner: "{}", name: "{}") {{ {} }} }}'
    number = server.open_pull("a" * 40, "b" * 40)
    server.add_comment(number, {"id": 41898282, "login": "github-actions[bot]"}, "ours")
    server.comments[number].append({"id": 5, "user": None, "body": "of a deleted account"})
    field = (
        f"pullRequest(number: {number}) {{ comments(first: 9) {{ nodes {{ body author "
        "{ login ... on User { databaseId } } } } }"
    )
    data = graphql(server, query.format(owner, name, field))["data"]
    # A bot is no user, and its login has no suffix here.
    assert data["repository"]["pullRequest"]["comments"]["nodes"] == [
        {"body": "ours", "author": {"login": "github-actions"}},
        {"body": "of a deleted account", "author": None},
    ]
    missing = graphql(server, query.format(owner, name, "pullRequest(number: 99) { number }"))
    assert missing["data"] == {"repository": {"pullRequest": None}}
    assert missing["errors"][0]["path"] == ["repository", "pullRequest"]
    assert "data" not in graphql(server, query.format(owner, name, "stars"))


def test_a_query_of_an_unknown_field_fails_the_test_that_sends_it():
    with pytest.raises(AssertionError, match="Cannot query field 'stars'"), serving() as server:
        ask(server, "/graphql", {"query": "query { stars }"}, "POST")


def test_further_pages_are_named_by_the_number_of_the_repository():
    with serving() as server:
        base = server.commit({"a": ("100644", b"a")})
        for _ in range(3):
            server.open_pull(base, base)
        query = "?state=open&sort=updated&direction=desc&per_page=2"
        first = ask(server, f"{BOARD}/pulls{query}")
        address = first.links["next"]["url"]
        assert address.startswith(server.address + NUMBERED)
        second = ask(server, address.removeprefix(server.address))
        assert sorted(pull["number"] for pull in (*first.json(), *second.json())) == [1, 2, 3]


def test_each_route_of_the_server_is_one_that_github_publishes():
    server = SettingsServer()
    examples = {
        r"(\d+)": "1",
        r"([\w-]+)": "x",
        r"(\w+)": "X",
        "(.+)": "x",
        r"([0-9a-f]{40})": "a" * 40,
    }
    unknown = []
    for route, verb, _, _ in server.routes():
        path = route.replace(OBJECT, PERMISSIONS)
        for pattern, example in examples.items():
            path = path.replace(pattern, example)
        for wrapped in ("(/actions)", r"(/environments/[\w-]+)"):
            path = path.replace(wrapped, wrapped.strip("()").replace(r"[\w-]+", "x"))
        if published.find(verb, BOARD + path.replace("\\", "")) is None:
            unknown.append((verb, path))
    assert unknown == []
