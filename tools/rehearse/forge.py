"""An imitated GitHub for the rehearsal: the server of the tests, with git repositories on disk.

It adds what people do: propose files by a fork, merge. A job's token has only the rights that its
workflow grants.
"""

import base64
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.github.refusals import Answer
from tests.github.server import REPOSITORY, ROUTES, STRANGER, GitHubServer

REQUIRED = "geneb/verdict"
"""The commit status that a merge requires, by the ruleset in docs/maintainer/setup.md."""
AUDITOR = frozenset(
    {
        *("contents:read", "contents:write", "metadata:read"),
        *("pull_requests:read", "pull_requests:write", "pulls:open"),
    }
)
"""Rights of the App that opens pull requests with audit records."""
APP_ACCOUNT = {"id": 9, "login": "audits[bot]"}
"""Account of that App."""

Files = Mapping[str, bytes | None]
"""Bytes of files by path in the repository; None deletes a file."""


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git in a folder without any user's settings; return its output, stripped."""
    return git_raw(folder, *arguments, stdin=stdin).decode().strip()


def git_raw(
    folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> bytes:
    """Run git; return its output. Raises RuntimeError with its error output if it fails."""
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        **{f"GIT_{role}_NAME": "Rehearsal" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "rehearsal@example.org" for role in ("AUTHOR", "COMMITTER")},
        **(env or {}),
    }
    command = ["git", "-C", str(folder), *arguments]
    process = subprocess.run(command, input=stdin, env=variables, capture_output=True, check=False)
    if process.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {process.stderr.decode(errors='replace')}")
    return process.stdout


def commit_of(repository: Path, parent: str, files: Files, message: str) -> str:
    """Create a commit with changed files on `parent`, and return it."""
    index = {"GIT_INDEX_FILE": str(repository / "commit.index")}
    git_raw(repository, "read-tree", parent, env=index)
    for path, raw in files.items():
        mode, blob = "0", "0" * 40  # deletes the file
        if raw is not None:
            mode, blob = "100644", git(repository, "hash-object", "-w", "--stdin", stdin=raw)
        index_line = f"{mode} {blob}\t{path}\n".encode()
        git_raw(repository, "update-index", "--index-info", stdin=index_line, env=index)
    tree = git_raw(repository, "write-tree", env=index).decode().strip()
    return git(repository, "commit-tree", tree, "-p", parent, "-m", message)


class GitForge(GitHubServer):
    """The imitated GitHub of one repository on disk, `repository`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.repository = folder / "board.git"
        self.fork = folder / "fork.git"
        folder_of_repository = folder / "git" / REPOSITORY
        folder_of_repository.parent.mkdir(parents=True)
        folder_of_repository.symlink_to(self.repository)
        self.clones = (folder / "git").as_uri()
        """Base address of the repositories for git, which are below it by name, as on GitHub."""
        self.tokens = set()
        self.known_labels = set()
        self.pinned: dict[str, Any] | None = None
        """The only account whose status allows a merge; None if every account's does."""
        self.identities: dict[str, dict[str, str]] = {}
        """Claims of each job, by the token with which it requests its identity."""

    def routes(self) -> list[tuple[str, str, str, Callable[..., Answer]]]:
        """Return the routes of the tests' server, and those that need git repositories on disk."""
        return [
            (r"/git/matching-refs/(\S+)", "GET", "contents:read", GitForge.matching_refs),
            *ROUTES,
            ("/pulls", "POST", "pulls:open", GitForge.make_pull),
            ("/contents/(.+)", "GET", "contents:read", GitForge.get_content),
            ("/git/blobs", "POST", "contents:write", GitForge.make_blob),
            ("/git/trees", "POST", "contents:write", GitForge.make_tree),
            ("/git/commits", "POST", "contents:write", GitForge.make_commit),
            ("/git/commits/([0-9a-f]{40})", "GET", "contents:read", GitForge.get_commit),
            ("/git/refs", "POST", "contents:write", GitForge.make_ref),
            ("/git/refs/heads/(.+)", "PATCH", "contents:write", GitForge.move_ref),
            (r"/pulls/(\d+)", "PATCH", "pull_requests:write", GitForge.patch_pull),
        ]

    @property
    def main(self) -> str:
        """The newest commit of main."""
        return git(self.repository, "rev-parse", "refs/heads/main")

    def main_sha(self) -> str:
        """Return the newest commit of main, as the server answers it."""
        return self.main

    def learn(self, sha: str) -> None:
        """Read the commits up to a commit, with their trees and files, unless already read."""
        listed = git(self.repository, "log", "--format=%H %T %P", sha).splitlines()
        for commit, tree, *parents in (line.split() for line in listed):
            if commit not in self.commits:
                self.commits[commit] = (tree, parents[0] if parents else None)
                self._learn_tree(tree)

    def _learn_tree(self, tree: str) -> None:
        listing = git_raw(self.repository, "ls-tree", "-r", "-z", "--full-tree", tree).decode()
        objects: dict[str, tuple[str, str]] = {}
        for line in listing.split("\0")[:-1]:
            facts, path = line.split("\t", 1)
            mode, _, sha = facts.split()
            objects[path] = (mode, sha)
        self.trees[tree] = objects
        missing = sorted({sha for _, sha in objects.values()} - set(self.blobs))
        contents = git_raw(
            self.repository, "cat-file", "--batch", stdin="\n".join([*missing, ""]).encode()
        )
        for sha in missing:
            head, _, contents = contents.partition(b"\n")
            size = int(head.split()[2])
            self.blobs[sha], contents = contents[:size], contents[size + 1 :]

    def push(self, path: str, raw: bytes) -> str:
        """Change a file on main, as a maintainer may, and return the new commit."""
        sha = commit_of(self.repository, self.main, {path: raw}, f"Change {path}")
        git(self.repository, "update-ref", "refs/heads/main", sha)
        self.learn(sha)
        return sha

    def propose(self, branch: str, title: str, files: Files) -> int:
        """Open a pull request by a stranger, from a fork of the current main; return its number."""
        if not self.fork.exists():
            git(self.repository, "init", "--quiet", "--bare", str(self.fork))
        git(self.fork, "fetch", "--quiet", str(self.repository), "+main:main")
        commit = commit_of(self.fork, "main", files, title)
        git(self.fork, "update-ref", f"refs/heads/{branch}", commit)
        opened = self.make_pull({}, {"head": f"stranger:{branch}", "title": title, "body": ""})
        return int(opened.body["number"])

    def make_pull(self, _query: dict[str, str], body: Any) -> Answer:
        """Open a pull request from a branch, with the refs that GitHub creates for it."""
        owner, _, branch = body["head"].rpartition(":")
        number = len(self.pulls) + 1
        head_ref = f"refs/pull/{number}/head"
        origin = self.fork if owner else self.repository
        git(self.repository, "fetch", "--quiet", str(origin), f"+refs/heads/{branch}:{head_ref}")
        head, base = git(self.repository, "rev-parse", head_ref), self.main
        tree = git(self.repository, "merge-tree", "--write-tree", base, head)
        merged = git(
            self.repository, "commit-tree", tree, "-p", base, "-p", head, "-m", f"Merge {head}"
        )
        git(self.repository, "update-ref", f"refs/pull/{number}/merge", merged)
        self.learn(head)
        user = STRANGER if owner else APP_ACCOUNT
        described = {"title": body["title"], "body": body.get("body", ""), "user": user}
        self.open_pull(head, base, **described)
        pull = self.pulls[number]
        pull["head"] |= {"ref": branch, "label": body["head"]}
        pull |= {"url": self._url(f"/pulls/{number}"), "merge_commit_sha": merged}
        return Answer(201, pull)

    def patch_pull(self, _query: dict[str, str], body: Any, number: str) -> Answer:
        """Change the state of a pull request, such as closing it."""
        self.pulls[int(number)]["state"] = body["state"]
        return Answer(200, self.pulls[int(number)])

    def matching_refs(self, _query: dict[str, str], _body: Any, name: str) -> Answer:
        """Return the branches whose names begin with `name`."""
        form = "--format=%(refname) %(objectname)"
        listed = git(self.repository, "for-each-ref", form, "refs/heads").splitlines()
        branches = [line.split() for line in listed if line.startswith(f"refs/{name}")]
        return Answer(200, [{"ref": ref, "object": {"sha": sha}} for ref, sha in branches])

    def make_group(self, number: int) -> str:
        """Create the commit of a merge queue: main with a pull request squashed into it."""
        sha = self._squashed(number, f"Group #{number}")
        ref = f"refs/heads/gh-readonly-queue/main/pr-{number}"
        git(self.repository, "update-ref", ref, sha)
        self.learn(sha)
        return sha

    def merge(self, number: int) -> str:
        """Squash a pull request into main; return the commit, or "" if its verdict forbids it."""
        head = self.pulls[number]["head"]["sha"]
        last = {status["context"]: status for status in reversed(self.statuses.get(head, []))}
        status = last.get(REQUIRED, {"state": "expected"})
        is_ours = self.pinned is None or status.get("creator") == self.pinned
        return self.squash(number) if status["state"] == "success" and is_ours else ""

    def squash(self, number: int) -> str:
        """Squash a pull request into main, whatever its verdict; return the new commit."""
        pull = self.pulls[number]
        sha = self._squashed(number, f"{pull['title']} (#{number})")
        git(self.repository, "update-ref", "refs/heads/main", sha)
        self.learn(sha)
        pull |= {"state": "closed", "merged_at": pull["updated_at"]}
        return sha

    def _squashed(self, number: int, message: str) -> str:
        """Create a commit on main with the changes of a pull request."""
        head = self.pulls[number]["head"]["sha"]
        tree = git(self.repository, "merge-tree", "--write-tree", self.main, head)
        return git(self.repository, "commit-tree", tree, "-p", self.main, "-m", message)

    # Endpoints by which a job creates commits over the API.

    def get_content(self, query: dict[str, str], _body: Any, path: str) -> Answer:
        """Return a file of a branch."""
        try:
            raw = git_raw(self.repository, "cat-file", "blob", f"refs/heads/{query['ref']}:{path}")
        except RuntimeError:
            return Answer(404, {"message": "Not Found"})
        return Answer(200, {"encoding": "base64", "content": base64.encodebytes(raw).decode()})

    def make_blob(self, _query: dict[str, str], body: Any) -> Answer:
        """Store a file."""
        raw = base64.b64decode(body["content"])
        sha = git(self.repository, "hash-object", "-w", "--stdin", stdin=raw)
        return Answer(201, {"sha": sha})

    def make_tree(self, _query: dict[str, str], body: Any) -> Answer:
        """Create a tree from another one with changed files."""
        env = {"GIT_INDEX_FILE": str(self.repository / "api.index")}
        git_raw(self.repository, "read-tree", body["base_tree"], env=env)
        for change in body["tree"]:
            index_line = f"{change['mode']},{change['sha']},{change['path']}"
            git_raw(self.repository, "update-index", "--add", "--cacheinfo", index_line, env=env)
        tree = git_raw(self.repository, "write-tree", env=env).decode().strip()
        return Answer(201, {"sha": tree})

    def get_commit(self, _query: dict[str, str], _body: Any, sha: str) -> Answer:
        """Return a commit with its tree."""
        tree = git(self.repository, "rev-parse", f"{sha}^{{tree}}")
        return Answer(200, {"sha": sha, "tree": {"sha": tree}})

    def make_commit(self, _query: dict[str, str], body: Any) -> Answer:
        """Create a commit, which no branch contains yet."""
        parents = [word for parent in body["parents"] for word in ("-p", parent)]
        sha = git(
            self.repository, "commit-tree", body["tree"], *parents, "-m", str(body["message"])
        )
        return Answer(201, {"sha": sha})

    def make_ref(self, _query: dict[str, str], body: Any) -> Answer:
        """Create a branch, unless one of that name exists."""
        try:
            git(self.repository, "update-ref", body["ref"], body["sha"], "0" * 40)
        except RuntimeError:
            return Answer(422, {"message": "Reference already exists"})
        return Answer(201, {"ref": body["ref"]})

    def move_ref(self, _query: dict[str, str], body: Any, branch: str) -> Answer:
        """Move a branch to another commit; main cannot be moved."""
        if branch == "main":
            return Answer(422, {"message": "Changes must be made through a pull request."})
        git(self.repository, "update-ref", f"refs/heads/{branch}", body["sha"])
        return Answer(200, {"ref": f"refs/heads/{branch}"})

    def _url(self, path: str) -> str:
        return f"{self.address}/repos/{REPOSITORY}{path}"

    def _route(self, verb: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer a request; one for a job's identity is outside the API of the repository."""
        if (verb, path) == ("GET", "/identity"):
            asking = next(
                (self.identities[token] for token in self.granted & set(self.identities)), {}
            )
            if not asking:
                return Answer(403, {"message": "this job may not ask for an identity"})
            self.used.add("id_token:write")
            return Answer(200, {"value": identity(asking, query["audience"])})
        return super()._route(verb, path, query, body)


def identity(claims: dict[str, str], audience: str) -> str:
    """Return a job's identity token, unsigned, as nothing here would verify it."""
    statement = json.dumps(claims | {"aud": audience}, sort_keys=True)
    return "identity." + base64.urlsafe_b64encode(statement.encode()).decode().rstrip("=")
