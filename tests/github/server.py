"""GitHub's REST API on loopback, as far as we use it, with the faults that GitHub has.

It holds commits, flat trees, blobs, pull requests, comments, labels and statuses, answers with
ETags and pages, counts what counts against the rate limit, and refuses as GitHub does. Anything
that it does not know is a 404, so that no request of ours goes unseen.
"""

import base64
import json
import re
import threading
from collections.abc import Callable
from functools import cache
from time import gmtime, strftime, time
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.github import published
from tests.github.graphql import graphql
from tests.github.history import History, git_sha
from tests.github.refusals import Answer, Fault, invalid, unknown_labels, unwritable, wrong_status

REPOSITORY = "org/board"
NUMBERED = "/repositories/1296269"
"""How GitHub names the repository in the addresses of further pages."""
BOT = {"id": 41898282, "login": "github-actions[bot]"}
STRANGER = {"id": 7, "login": "stranger"}
FORK = {"full_name": "stranger/board"}
TOKEN = "ghs_token"  # noqa: S105 (the loopback server's own)
READ = frozenset(
    f"{scope}:read" for scope in ("contents", "issues", "metadata", "pull_requests", "statuses")
)
"""The permissions of a token that may only read; each token has `metadata:read`."""
WRITE = READ | {"pull_requests:write", "statuses:read", "statuses:write"}
WRITE |= {"issues:read", "issues:write"}


Request = tuple[str, str, str, bytes]
"""Verb, target, token and body."""


class GitHubServer(History):
    """The state of one repository, and what was asked of it."""

    prepared: tuple[Request, Answer] | None = None
    """A request that was answered before it arrives over HTTP, and its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.issues: dict[int, dict[str, Any]] = {}
        self.is_graphql = True
        self.rights: dict[str, str] = {}
        """Login to the permission that it has."""
        self.queued: dict[str, str] = {}
        """Branches of the merge queue, and their commits."""
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.requests: list[tuple[str, str]] = []
        self.charged = 0
        self.queried = 0
        """Queries of GraphQL, which GitHub counts separately."""
        self.limit = 5000
        self.permissions = WRITE
        self.granted: frozenset[str] = WRITE
        """What the token of the request at hand may do."""
        self.account = BOT
        """Whose token it is."""
        self.accounts: dict[str, dict[str, Any]] = {}
        """Accounts by token; every other token is that of GitHub Actions."""
        self.tokens = {TOKEN}
        self.grants: dict[str, frozenset[str]] = {}
        """Tokens with rights of their own, as those of jobs; others have `permissions`."""
        self.denied: list[str] = []
        """Requests for which a token lacked the permission."""
        self.used: set[str] = set()
        """Permissions that some request needed and had."""
        self.known_labels: set[str] | None = None
        """Labels of the repository; None: a label need not be there before it is set."""
        self.faults: list[Fault] = []
        self.truncated: set[str] = set()
        self.lies: dict[str, bytes] = {}
        self.archived = False
        self.content_max = 500
        """Comments and issues that GitHub takes in an hour."""
        self.content = 0
        self.skew = 0.0
        self.stamp = ""
        """Time of new statuses, if it is not that of the clock."""
        self.excused = ""
        """Why a test lets it answer, or be asked, what GitHub's description does not have."""
        self.faults_of_form: list[str] = []
        """Requests and answers that are not as GitHub publishes them."""
        self.before: Callable[[str, str], None] = lambda _verb, _path: None
        self.address = ""
        self.name = REPOSITORY
        """As GitHub knows it now; the old name still leads there."""
        self.lock = threading.RLock()

    # What a test sets up.

    def open_pull(self, head: str, base: str, **options: Any) -> int:
        number = len(self.pulls) + 1
        stamp = f"2026-11-{number // 24 % 28 + 1:02}T{number % 24:02}:00:00Z"
        self.pulls[number] = {
            "number": number,
            "state": "open",
            "title": f"Add a model ({number})",
            "body": "",
            "draft": False,
            "created_at": stamp,
            "updated_at": stamp,
            "html_url": f"https://github.com/{self.name}/pull/{number}",
            "author_association": "NONE",
            "user": STRANGER,
            "labels": [],
            "locked": False,
            "assignees": [],
            "head": {"sha": head, "ref": "patch-1", "label": "stranger:patch-1", "repo": FORK},
            "mergeable": None,  # until GitHub has computed it
            "base": {
                "sha": base,
                "ref": "main",
                "label": "org:main",
                "repo": {"full_name": self.name, "default_branch": "main"},
            },
        } | options
        self.comments[number] = []
        return number

    def add_comment(self, number: int, user: dict[str, Any], body: str) -> int:
        count = sum(len(comment) for comment in self.comments.values())
        comment = {"id": 1000 + count, "user": user, "body": body}
        self.comments[number].append(comment)
        return 1000 + count

    def labels(self, number: int) -> list[str]:
        result = self.thread(number)["labels"]
        labels = result if isinstance(result, list) else []
        return [str(label.get("name") if isinstance(label, dict) else label) for label in labels]

    def writes(self) -> list[tuple[str, str]]:
        return [
            (verb, path)
            for verb, path in self.requests
            if verb != "GET" and path != "/graphql"  # a query is a POST, and changes nothing
        ]

    # What it answers.

    def answer_once(self, request: Request) -> Answer:
        """Return what was prepared for a request, or answer it."""
        if self.prepared is None:
            return self.answer(*request)
        (announced, answer), self.prepared = self.prepared, None
        if announced != request:
            self.faults_of_form.append(f"over HTTP {announced} arrived as {request}")
        return answer

    def answer(self, verb: str, target: str, token: str, raw: bytes) -> Answer:
        target = target.replace(f"{NUMBERED}/", f"/repos/{REPOSITORY}/")
        url = urlsplit(target)
        self.requests.append((verb, target))
        self.before(verb, url.path)
        rights = self.rights_of(token)
        if rights is None:
            return Answer(401, {"message": "Bad credentials"})
        fault = next((f for f in self.faults if self._hits(f, verb, target)), None)
        if fault is not None:
            fault.times -= 1
            if not fault.done:
                self.charged += 1
                return Answer(fault.status, {"message": fault.message}, fault.headers)
        if url.path == "/graphql":
            return self._queried(token, json.loads(raw))
        if self.charged >= self.limit:
            headers = {"X-RateLimit-Reset": str(int(time() + self.skew) + 1800)}
            return Answer(403, {"message": "API rate limit exceeded for installation."}, headers)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        self.granted = rights
        self.account = self.accounts.get(token, BOT)
        result = self._published(verb, url.path, query, json.loads(raw) if raw else None)
        if fault is not None:
            return Answer(fault.status, {"message": fault.message}, fault.headers)
        self.charged += 1
        return result

    def rights_of(self, token: str) -> frozenset[str] | None:
        """Return what a token may do; None for one that GitHub does not know."""
        if token in self.grants:
            return self.grants[token]
        return frozenset(self.permissions) if token in self.tokens else None

    @staticmethod
    def _hits(fault: Fault, verb: str, target: str) -> bool:
        return fault.times > 0 and fault.verb == verb and bool(re.search(fault.path, target))

    def _queried(self, token: str, body: Any) -> Answer:
        """Answer a query, which has a limit of its own."""
        self.queried += 1
        self.granted = self.grants.get(token, frozenset(self.permissions))
        headers = {"X-RateLimit-Resource": "graphql"}
        if not self.is_graphql:
            return Answer(502, {"message": "Server Error"}, headers)
        answer = graphql(self, body["query"])
        if "data" not in answer:
            self.faults_of_form += [error["message"] for error in answer["errors"]]
        return Answer(200, answer, headers)

    def _published(self, verb: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer with all members that GitHub's answers have; note what is not as published."""
        answer = self._route(verb, path, query, body)
        if path.startswith("/identity"):  # of a runner, and not of the API
            return answer
        operation = published.find(verb, path)
        if operation is None:
            if answer.status != 404:
                self.faults_of_form.append(f"GitHub publishes no operation {verb} {path}")
            return answer
        self.faults_of_form += published.request_faults(operation, query, body)
        answer.body, faults = published.answered(operation, answer.status, answer.body)
        self.faults_of_form += faults
        return answer

    def _route(self, verb: str, path: str, query: dict[str, str], body: Any) -> Answer:
        for route, method, needs, handler in self.routes():
            if method == verb and (match := _pattern(route).fullmatch(path)):
                if needs not in self.granted:
                    scope, access = needs.split(":")
                    headers = {"X-Accepted-GitHub-Permissions": f"{scope}={access}"}
                    message = "Resource not accessible by integration"
                    self.denied.append(f"{verb} {path} needs {scope}: {access}")
                    return Answer(403, {"message": message}, headers)
                self.used.add(needs)
                if verb != "GET":
                    self.content += verb == "POST" and path.endswith(("/issues", "/comments"))
                    if refusal := unwritable(self.archived, self.content > self.content_max):
                        return refusal
                return handler(self, query, body, *match.groups())
        return Answer(404, {"message": "Not Found"})

    def routes(self) -> "list[tuple[str, str, str, Callable[..., Answer]]]":
        """List what it answers: path, method, the right it takes, and who answers."""
        return ROUTES

    def get_permission(self, _query: dict[str, str], _body: Any, login: str) -> Answer:
        return Answer(200, {"permission": self.rights.get(login, "read")})  # it is public

    def head_commit(self, _query: dict[str, str], _body: Any) -> Answer:
        sha = self.main_sha()
        return Answer(200, {"sha": sha, "commit": {"tree": {"sha": self.commits[sha][0]}}})

    def list_commits(self, query: dict[str, str], _body: Any) -> Answer:
        """List the commits of a line; of those with a path, the ones that touch it."""
        line = list(dict.fromkeys(self.ancestors(query["sha"])))
        parents = {sha: self.commits[sha][1] for sha in line}
        if path := query.get("path"):
            line = [
                sha for sha in line if self._entry(sha, path) != self._entry(parents[sha], path)
            ]
        listed = [
            {"sha": sha, "parents": [{"sha": p} for p in (parents[sha], self.merges.get(sha)) if p]}
            for sha in line
        ]
        return self._page(listed, f"/repos/{REPOSITORY}/commits", query)

    def _entry(self, sha: str | None, path: str) -> tuple[str, str] | None:
        return self.trees[self.commits[sha][0]].get(path) if sha else None

    def matching_refs(self, _query: dict[str, str], _body: Any, name: str) -> Answer:
        queued_refs = sorted(ref for ref in self.queued if ref.startswith(f"refs/heads/{name}"))
        refs = [
            {"ref": ref, "object": {"type": "commit", "sha": self.queued[ref]}}
            for ref in queued_refs
        ]
        return Answer(200, refs)

    def get_repository(self, _query: dict[str, str], _body: Any) -> Answer:
        may_push = "contents:write" in self.granted
        return Answer(200, {"full_name": REPOSITORY, "permissions": {"push": may_push}})

    def list_issues(self, query: dict[str, str], _body: Any) -> Answer:
        if "labels" in query:
            return self._labelled(query)
        assert (query["sort"], query["direction"]) == ("created", "asc")
        issues = [issue for issue in self.issues.values() if issue["state"] == query["state"]]
        if "creator" in query:
            issues = [issue for issue in issues if issue["user"]["login"] == query["creator"]]
        return self._page(issues, f"/repos/{REPOSITORY}/issues", query)

    def _labelled(self, query: dict[str, str]) -> Answer:
        """List what has a label: pull requests are issues, too."""
        assert (query["state"], query["sort"], query["direction"]) == ("all", "created", "desc")
        numbers = [n for n in (*self.pulls, *self.issues) if query["labels"] in self.labels(n)]
        numbered = [{"number": number} for number in sorted(numbers, reverse=True)]
        return self._page(numbered, f"/repos/{REPOSITORY}/issues", query)

    def post_issue(self, _query: dict[str, str], body: Any) -> Answer:
        assert len(body["body"]) <= 65_536
        number = 10_000 + len(self.issues)
        fields = {"number": number, "user": BOT, "state": "open", "labels": [], "locked": False}
        self.issues[number] = body | fields
        self.comments[number] = []
        return Answer(201, self.issues[number])

    def thread(self, number: int) -> dict[str, Any]:
        """Return an issue or a pull request: both have labels and comments."""
        return self.issues[number] if number in self.issues else self.pulls[number]

    def get_issue(self, _query: dict[str, str], _body: Any, number: str) -> Answer:
        return Answer(200, self.thread(int(number)))

    def patch_issue(self, _query: dict[str, str], body: Any, number: str) -> Answer:
        assert len(body.get("body", "")) <= 65_536
        if int(number) not in self.issues:
            return Answer(404, {"message": "Not Found"})
        self.issues[int(number)] |= body
        return Answer(200, self.issues[int(number)])

    def list_pulls(self, query: dict[str, str], _body: Any) -> Answer:
        assert query["state"] == "open"
        pulls = [p for p in self.pulls.values() if p["state"] != "closed"]
        if "head" in query:
            pulls = [p for p in pulls if f"org:{p['head']['ref']}" == query["head"]]
            return Answer(200, pulls)
        assert (query["sort"], query["direction"]) == ("updated", "desc")
        pulls.sort(key=lambda pull: str(pull["updated_at"]), reverse=True)
        return self._page(pulls, f"/repos/{REPOSITORY}/pulls", query)

    def get_pull(self, _query: dict[str, str], _body: Any, number: str) -> Answer:
        pull = self.pulls.get(int(number))
        return Answer(200, pull) if pull else Answer(404, {"message": "Not Found"})

    def compare(self, query: dict[str, str], _body: Any, base: str, head: str) -> Answer:
        assert query == {"per_page": "1"}
        ancestors = set(self.ancestors(base))
        common = next((sha for sha in self.ancestors(head) if sha in ancestors), None)
        if common is None:
            return Answer(404, {"message": "No common ancestor between them."})
        commit = {"sha": common, "commit": {"tree": {"sha": self.commits[common][0]}}}
        return Answer(200, {"merge_base_commit": commit, "status": "diverged", "files": []})

    def get_tree(self, query: dict[str, str], _body: Any, sha: str) -> Answer:
        assert query == {"recursive": "1"}
        name = self.commits[sha][0] if sha in self.commits else sha
        if name not in self.trees:
            return Answer(404, {"message": "Not Found"})
        folders = {str(p) for path in self.trees[name] for p in _parents(path)}
        entries = [
            {"path": path, "mode": "040000", "type": "tree", "sha": git_sha("tree", path.encode())}
            for path in sorted(folders)
        ]
        for path, (mode, blob) in self.trees[name].items():
            kind = "commit" if mode == "160000" else "blob"
            entry: dict[str, Any] = {"path": path, "mode": mode, "type": kind, "sha": blob}
            if kind == "blob":
                entry["size"] = len(self.blobs[blob])
            entries.append(entry)
        truncated = bool({sha, name} & self.truncated)
        return Answer(200, {"sha": name, "tree": entries, "truncated": truncated})

    def get_blob(self, _query: dict[str, str], _body: Any, sha: str) -> Answer:
        if sha not in self.blobs:
            return Answer(404, {"message": "Not Found"})
        raw = self.lies.get(sha, self.blobs[sha])
        content = base64.encodebytes(raw).decode()
        return Answer(200, {"sha": sha, "encoding": "base64", "content": content, "size": len(raw)})

    def list_comments(self, query: dict[str, str], _body: Any, number: str) -> Answer:
        path = f"/repos/{REPOSITORY}/issues/{number}/comments"
        return self._page(self.comments[int(number)], path, query)

    def post_comment(self, _query: dict[str, str], body: Any, number: str) -> Answer:
        assert 0 < len(body["body"]) <= 65_536
        if self.thread(int(number))["locked"] is True:
            message = "Unable to create comment because issue is locked."
            return Answer(403, {"message": message})
        self.add_comment(int(number), BOT, body["body"])
        return Answer(201, self.comments[int(number)][-1])

    def patch_comment(self, _query: dict[str, str], body: Any, comment: str) -> Answer:
        assert 0 < len(body["body"]) <= 65_536
        for comments in self.comments.values():
            for stored_comment in comments:
                if stored_comment["id"] == int(comment):
                    if stored_comment["user"]["id"] != BOT["id"]:
                        return Answer(403, {"message": "Resource not accessible by integration"})
                    stored_comment["body"] = body["body"]
                    return Answer(200, stored_comment)
        return Answer(404, {"message": "Not Found"})

    def post_labels(self, _query: dict[str, str], body: Any, number: str) -> Answer:
        if refusal := unknown_labels(body["labels"], self.known_labels):
            return refusal
        known = self.labels(int(number))
        result = self.thread(int(number))["labels"]
        labels = result if isinstance(result, list) else []
        labels += [{"name": name} for name in body["labels"] if name not in known]
        self.thread(int(number))["labels"] = labels
        return Answer(200, labels)

    def put_labels(self, _query: dict[str, str], body: Any, number: str) -> Answer:
        if refusal := unknown_labels(body["labels"], self.known_labels):
            return refusal
        labels = [{"name": name} for name in body["labels"]]
        self.thread(int(number))["labels"] = labels
        return Answer(200, labels)

    def delete_label(self, _query: dict[str, str], _body: Any, number: str, name: str) -> Answer:
        labels = self.thread(int(number))["labels"]
        if unquote(name) not in self.labels(int(number)):
            return Answer(404, {"message": "Label does not exist"})
        remaining_labels = [label for label in labels if label != {"name": unquote(name)}]
        self.thread(int(number))["labels"] = remaining_labels
        return Answer(200, remaining_labels)

    def list_statuses(self, query: dict[str, str], _body: Any, sha: str) -> Answer:
        path = f"/repos/{REPOSITORY}/commits/{sha}/statuses"
        return self._page(self.statuses.get(sha, []), path, query)

    def post_status(self, _query: dict[str, str], body: Any, sha: str) -> Answer:
        assert body["state"] in {"error", "failure", "pending", "success"}
        assert len(body["description"]) <= 140
        if refusal := wrong_status(body, self.statuses.get(sha, [])):
            return invalid("Status", refusal)
        moment = self.stamp or strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(time() + self.skew))
        status = body | {"creator": self.account, "created_at": moment}
        self.statuses.setdefault(sha, []).insert(0, status)
        return Answer(201, self.statuses[sha][0])

    def _page(self, items: list[Any], path: str, query: dict[str, str]) -> Answer:
        size, page = int(query["per_page"]), int(query.get("page", 1))
        rest = "".join(f"&{k}={v}" for k, v in query.items() if k != "page")
        headers = {}
        if page * size < len(items):
            below = path.removeprefix(f"/repos/{REPOSITORY}")
            url = f"{self.address}{NUMBERED}{below}?page={page + 1}{rest}"
            headers["Link"] = f'<{url}>; rel="next", <{url}>; rel="last"'
        return Answer(200, items[(page - 1) * size : page * size], headers)


@cache
def _pattern(route: str) -> re.Pattern[str]:
    return re.compile(f"/repos/{REPOSITORY}{route}")


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


SHA = "([0-9a-f]{40})"
ROUTES: list[tuple[str, str, str, Callable[..., Answer]]] = [
    (r"/collaborators/([\w-]+)/permission", "GET", "metadata:read", GitHubServer.get_permission),
    ("/commits/HEAD", "GET", "contents:read", GitHubServer.head_commit),
    ("/commits", "GET", "contents:read", GitHubServer.list_commits),
    ("/git/matching-refs/heads/(.+)", "GET", "contents:read", GitHubServer.matching_refs),
    ("", "GET", "metadata:read", GitHubServer.get_repository),
    ("/issues", "GET", "issues:read", GitHubServer.list_issues),
    ("/issues", "POST", "issues:write", GitHubServer.post_issue),
    (r"/issues/(\d+)", "GET", "pull_requests:read", GitHubServer.get_issue),
    (r"/issues/(\d+)", "PATCH", "issues:write", GitHubServer.patch_issue),
    ("/pulls", "GET", "pull_requests:read", GitHubServer.list_pulls),
    (r"/pulls/(\d+)", "GET", "pull_requests:read", GitHubServer.get_pull),
    (rf"/compare/{SHA}\.\.\.{SHA}", "GET", "contents:read", GitHubServer.compare),
    (f"/git/trees/{SHA}", "GET", "contents:read", GitHubServer.get_tree),
    (f"/git/blobs/{SHA}", "GET", "contents:read", GitHubServer.get_blob),
    (r"/issues/(\d+)/comments", "GET", "pull_requests:read", GitHubServer.list_comments),
    (r"/issues/(\d+)/comments", "POST", "pull_requests:write", GitHubServer.post_comment),
    (r"/issues/comments/(\d+)", "PATCH", "pull_requests:write", GitHubServer.patch_comment),
    (r"/issues/(\d+)/labels", "POST", "pull_requests:write", GitHubServer.post_labels),
    (r"/issues/(\d+)/labels", "PUT", "pull_requests:write", GitHubServer.put_labels),
    (r"/issues/(\d+)/labels/(.+)", "DELETE", "pull_requests:write", GitHubServer.delete_label),
    (f"/commits/{SHA}/statuses", "GET", "statuses:read", GitHubServer.list_statuses),
    (f"/statuses/{SHA}", "POST", "statuses:write", GitHubServer.post_status),
]
