"""A Hub on loopback: real commits with parents and trees, and the protocol that the client speaks.

Written from the client's source (huggingface_hub 2.4): which addresses it calls, what it sends,
and which fields of the answers it reads. What the real Hub does beyond that is not imitated.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Callable  # noqa: TC003 (one name costs nothing)
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, dict[str, str], bytes]
WRITER, READER = "hf_writer_of_tests", "hf_reader_of_tests"


class Commit(NamedTuple):
    """One commit of a repository."""

    oid: str
    parent: str | None
    tree: dict[str, bytes]
    title: str
    message: str


@dataclass
class Repo:
    """One Space or data set: a line of commits, and who may write now."""

    name: str
    commits: list[Commit] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    large: dict[str, bytes] = field(default_factory=dict)
    """sha256 to bytes of what was uploaded by LFS."""
    lfs_over: int = 10_000_000
    """Files with more bytes go by LFS."""
    ignored: set[str] = field(default_factory=set)
    """What a .gitignore on the Hub names."""

    @property
    def head(self) -> Commit:
        return self.commits[-1]

    def at(self, revision: str) -> Commit | None:
        if revision == "main":
            return self.head
        return next((one for one in self.commits if one.oid == revision), None)

    def add(self, tree: dict[str, bytes], title: str, message: str = "") -> Commit:
        parent = self.commits[-1].oid if self.commits else None
        facts = [parent, title, message, len(self.commits), *sorted(map(git_name, tree.values()))]
        oid = hashlib.sha1(json.dumps(facts).encode(), usedforsecurity=False).hexdigest()
        self.commits.append(Commit(oid, parent, dict(tree), title, message))
        return self.head


def git_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class Fault(NamedTuple):
    """What happens to the next call of one step."""

    step: str
    status: int = 0
    """0: no answer at all."""
    headers: dict[str, str] = {}  # noqa: RUF012 (never changed)
    after: bool = False
    """Whether the call has its effect first."""
    body: bytes = b"{}"


class Refusal(Exception):  # noqa: N818 (an answer like any other)
    """An answer that is an error."""

    def __init__(self, status: int, **headers: str) -> None:
        self.answer = (status, {k.replace("_", "-"): v for k, v in headers.items()}, b"{}")


class Hub:
    """The server: its repositories, who may do what, planned faults, and the calls so far."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.tokens = {WRITER: "write", READER: "read"}
        self.faults: list[Fault] = []
        self.calls: list[str] = []
        self.watch: Callable[[str, str], None] = lambda _step, _when: None
        self.over = threading.Event()
        self.trusted: dict[str, str] = {}
        """Id token to the repository that it may publish."""
        self._guard = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def create(self, resource: str, tree: dict[str, bytes] | None = None) -> Repo:
        """Make "spaces/OWNER/NAME" with a first commit, as the real Hub does."""
        self.repos[resource] = Repo(resource)
        self.repos[resource].add(tree or {".gitattributes": b""}, "initial commit")
        return self.repos[resource]

    def planned(self, step: str) -> Fault | None:
        with self._guard:
            self.calls.append(step)
            for fault in self.faults:
                if fault.step == step:
                    self.faults.remove(fault)
                    return fault
        return None

    # What each address does -------------------------------------------------------------------

    def answer(self, step: str, call: "Call") -> Answer:
        answer: Answer = getattr(self, f"_{step.replace('-', '_')}")(call)
        return answer

    def _repo(self, call: "Call", *, write: bool = False) -> Repo:
        right = self.tokens.get(call.token) if call.token else None
        if call.token and right is None:
            raise Refusal(401, X_Error_Message="Invalid credentials in Authorization header")
        repo = self.repos.get(call.resource)
        if repo is None:
            code = {"X_Error_Code": "RepoNotFound"} if right else {}
            raise Refusal(404 if right else 401, **code)
        if write and right != "write":
            raise Refusal(403)
        return repo

    def _commit_of(self, call: "Call") -> Commit:
        found = self._repo(call).at(call.revision)
        if found is None:
            raise Refusal(404, X_Error_Code="RevisionNotFound")
        return found

    def _whoami(self, call: "Call") -> Answer:
        if self.tokens.get(call.token) is None:
            raise Refusal(401, X_Error_Message="Invalid credentials in Authorization header")
        return as_json({"name": "tester", "auth": {"accessToken": {"role": "write"}}})

    def _info(self, call: "Call") -> Answer:
        commit, repo = self._commit_of(call), self._repo(call)
        siblings = []
        for name, content in sorted(commit.tree.items()):
            one: dict[str, Any] = {"rfilename": name}
            if "blobs" in call.query:
                one |= {"size": len(content), "blobId": git_name(content)}
                if hashlib.sha256(content).hexdigest() in repo.large:
                    digest = hashlib.sha256(content).hexdigest()
                    one["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
            siblings.append(one)
        return as_json({"id": call.name, "sha": commit.oid, "siblings": siblings})

    def _tree(self, call: "Call") -> Answer:
        tree = self._commit_of(call).tree
        files = [
            {"type": "file", "path": name, "size": len(content), "oid": git_name(content)}
            for name, content in sorted(tree.items())
        ]
        return as_json(files)

    def _commits(self, call: "Call") -> Answer:
        self._commit_of(call)
        listed = [
            {
                "id": one.oid,
                "title": one.title,
                "message": one.message,
                "authors": [{"user": "tester"}],
                "date": "2026-11-20T12:00:00.000Z",
            }
            for one in reversed(self._repo(call).commits)
        ]
        return as_json(listed)

    def _resolve(self, call: "Call") -> Answer:
        commit = self._commit_of(call)
        if call.path not in commit.tree:
            raise Refusal(404, X_Error_Code="EntryNotFound")
        content = commit.tree[call.path]
        tags = {"ETag": f'"{git_name(content)}"', "X-Repo-Commit": commit.oid}
        return 200, tags, content

    def _validate_yaml(self, call: "Call") -> Answer:
        asked = json.loads(call.body)
        content, space = asked["content"], asked["repoType"] == "space"
        header = content.partition("\n---\n")[0] if content.startswith("---\n") else ""
        if space and "\nsdk: " not in header:
            error = {"errors": [{"message": '"sdk" is required'}], "warnings": []}
            return 400, {}, json.dumps(error).encode()
        return as_json({"errors": [], "warnings": []})

    def _preupload(self, call: "Call") -> Answer:
        repo = self._repo(call, write=True)
        head = repo.head.tree
        modes = []
        for file in json.loads(call.body)["files"]:
            lfs = file["size"] > repo.lfs_over
            there = head.get(file["path"])
            modes.append(
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if lfs else "regular",
                    "shouldIgnore": file["path"] in repo.ignored,
                    "oid": None if there is None or lfs else git_name(there),
                }
            )
        return as_json({"files": modes})

    def _lfs_batch(self, call: "Call") -> Answer:
        repo = self._repo(call, write=True)
        objects = []
        for one in json.loads(call.body)["objects"]:
            actions = {"upload": {"href": f"{self.endpoint}/lfs/{call.resource}/{one['oid']}"}}
            entry = {"oid": one["oid"], "size": one["size"]}
            objects.append(entry if one["oid"] in repo.large else entry | {"actions": actions})
        return as_json({"transfer": "basic", "objects": objects})

    def _lfs_put(self, call: "Call") -> Answer:
        if hashlib.sha256(call.body).hexdigest() != call.path:
            raise Refusal(422)
        self.repos[call.resource].large[call.path] = call.body
        return 200, {}, b""

    def _commit(self, call: "Call") -> Answer:
        repo = self._repo(call, write=True)
        if not repo.lock.acquire(blocking=False):
            raise Refusal(409)
        try:
            return self._make_commit(repo, [json.loads(line) for line in call.body.splitlines()])
        finally:
            repo.lock.release()

    def _make_commit(self, repo: Repo, lines: list[dict[str, Any]]) -> Answer:
        header = lines[0]["value"]
        if header.get("parentCommit") not in {None, repo.head.oid}:
            raise Refusal(412)
        tree = dict(repo.head.tree)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"], validate=True)
            elif line["key"] == "lfsFile":
                tree[value["path"]] = repo.large[value["oid"]]
            elif line["key"] == "deletedFile":
                if tree.pop(value["path"], None) is None:
                    raise Refusal(404, X_Error_Code="EntryNotFound")
            else:
                raise Refusal(400)
        made = repo.add(tree, header["summary"], header["description"])
        return as_json({"success": True, "commitOid": made.oid, "commitUrl": f"x/{made.oid}"})

    def _identity(self, call: "Call") -> Answer:
        if call.token != "runner":  # noqa: S105 (what the runner of the tests is given)
            raise Refusal(401)
        return as_json({"value": f"identity for {call.query['audience'][0]}"})

    def _exchange(self, call: "Call") -> Answer:
        asked = json.loads(call.body)
        if self.trusted.get(asked["subject_token"]) != asked["resource"]:
            raise Refusal(403)
        return as_json({"access_token": WRITER, "token_type": "bearer", "expires_in": 3600})


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


def as_json(value: Any) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


_FIXED = {
    "/api/whoami-v2": "whoami",
    "/api/validate-yaml": "validate-yaml",
    "/oauth/token": "exchange",
    "/identity": "identity",
}


OTHER = "other"
"""What the client asks on its own account, such as for a list of programs: no answer here."""


def route(path: str) -> tuple[str, str, str, str, str]:
    """Give step, resource, name, revision and path in the repository of an address."""
    if path in _FIXED:
        return _FIXED[path], "", "", "main", ""
    parts = path.strip("/").split("/")
    if parts[0] == "lfs":
        return "lfs-put", "/".join(parts[1:4]), "", "main", parts[4]
    if parts[0] == "api" and len(parts) < 4:
        return OTHER, "", "", "main", ""
    if parts[0] == "api":
        kind, owner, repo, *rest = parts[1:]
        name = f"{owner}/{repo}"
        step = {"revision": "info", "": "info"}.get(rest[0] if rest else "", (rest or [""])[0])
        revision = rest[1] if len(rest) > 1 else "main"
        return step, f"{kind}/{name}", name, revision, "/".join(rest[2:])
    kind, owner, repo, *rest = parts
    name = f"{owner}/{repo.removesuffix('.git')}"
    if repo.endswith(".git"):
        return "lfs-batch", f"{kind}/{name}", name, "main", ""
    return "resolve", f"{kind}/{name}", name, rest[1], "/".join(rest[2:])


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:  # noqa: C901 (one class, that knows its hub)
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            return content

        def _serve(self) -> None:
            address = urlsplit(self.path)
            step, resource, name, revision, path = route(unquote(address.path))
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            query = parse_qs(address.query)
            call = Call(token, resource, name, revision, path, query, self._body())
            if step == OTHER:
                self._send(404, {}, b"{}")
                return
            fault = hub.planned(step)
            hub.watch(step, "before")
            answer: Answer = (500, {}, b"{}")
            if fault is None or fault.after:
                try:
                    answer = hub.answer(step, call)
                except Refusal as refusal:
                    answer = refusal.answer
            hub.watch(step, "after")
            if fault is not None:
                if not fault.status:
                    hub.over.wait()
                    return
                answer = (fault.status, fault.headers, fault.body)
            self._send(*answer)

        def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
            told = {"RateLimit": '"api";r=499;t=60', **headers}
            told["Content-Length"] = str(len(content))
            try:
                self.send_response(status)
                for key, value in told.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)
            except OSError:
                pass  # whoever asked was killed

        do_GET = do_HEAD = do_POST = do_PUT = _serve  # noqa: N815 (names of http.server)

    return Handler
