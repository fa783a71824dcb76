"""What each address of the Hub of the tests does.

Written from the client's source (huggingface_hub 2.4): which addresses it calls, what it sends,
and which fields of the answers it reads. What the real Hub does beyond that is not imitated.
"""

import base64
import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any

from tests.publish.hub_call import Answer, Call, Refusal, as_json
from tests.publish.hub_cas import CAS_TOKEN, Storage
from tests.publish.hub_jobs import HARDWARE, Jobs
from tests.publish.hub_repo import Commit, Repo, git_name

WRITER, READER = "hf_writer_of_tests", "hf_reader_of_tests"


@dataclass
class Shelf:
    """All repositories, who may do what with them, and the answer to each call."""

    repos: dict[str, Repo] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=lambda: {WRITER: "write", READER: "read"})
    trusted: dict[str, str] = field(default_factory=dict)
    """Id token to the repository that it may publish."""
    endpoint: str = ""
    storage: Storage = field(default_factory=Storage)
    """Where large files lie."""
    jobs: Jobs = field(default_factory=Jobs)
    lives_s: int = 3600
    """Seconds for which a token for the storage is good."""

    def answer(self, step: str, call: Call) -> Answer:
        answer: Answer = getattr(self, f"_{step.replace('-', '_')}")(call)
        return answer

    def _hardware(self, _call: Call) -> Answer:
        return as_json(HARDWARE)

    def _jobs(self, call: Call) -> Answer:
        """Start a Job, or show it, or its log."""
        if self.tokens.get(call.token) != "write":
            raise Refusal(403)
        return self.jobs.answer(call.name, call.path, call.body)

    def _repo(self, call: Call, *, write: bool = False) -> Repo:
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

    def _commit_of(self, call: Call) -> Commit:
        commit_found = self._repo(call).at(call.revision)
        if commit_found is None:
            raise Refusal(404, X_Error_Code="RevisionNotFound")
        return commit_found

    def _whoami(self, call: Call) -> Answer:
        role = self.tokens.get(call.token)
        if role is None:
            raise Refusal(401, X_Error_Message="Invalid credentials in Authorization header")
        return as_json({"name": "tester", "auth": {"accessToken": {"role": role}}})

    def _create(self, call: Call) -> Answer:
        """Make a Space, as its owner may."""
        document = json.loads(call.body)
        if self.tokens.get(call.token) != self.tokens[WRITER]:
            raise Refusal(403)
        name = f"{document['organization']}/{document['name']}"
        assert (document["type"], document["sdk"]) == ("space", "static")
        if f"spaces/{name}" in self.repos:
            raise Refusal(409)
        made = self.repos[f"spaces/{name}"] = Repo(f"spaces/{name}")
        made.add({".gitattributes": b""}, "initial commit")
        return as_json({"url": f"{self.endpoint}/spaces/{name}"})

    def _info(self, call: Call) -> Answer:
        commit, repo = self._commit_of(call), self._repo(call)
        siblings = []
        for name, content in sorted(commit.tree.items()):
            member: dict[str, Any] = {"rfilename": name}
            if "blobs" in call.query:
                member |= {"size": len(content), "blobId": git_name(content)}
                if repo.is_large(name, content):
                    member["lfs"] = _pointer(content) | {"sha256": _sha256(content)}
            siblings.append(member)
        info: dict[str, Any] = {
            "id": repo.renamed or call.name,
            "sha": commit.oid,
            "siblings": siblings,
        }
        if call.resource.startswith("spaces/"):
            info |= {"private": repo.is_private, "disabled": False, "sdk": "static"}
            info |= {"runtime": {"stage": repo.stage}} if repo.stage else {}
            host = f"{self.endpoint}/served/{call.resource}"
            info |= {"host": host} if repo.names_host else {}
        return as_json(info)

    def _served(self, call: Call) -> Answer:
        """Return a file of a Space as visitors get it: without a token, and not always the head."""
        assert not call.token
        repo = self.repos[call.resource]
        tree = repo.commits[repo.served].tree
        if repo.is_private or repo.stage != "RUNNING" or call.path not in tree:
            return 404, {"Content-Type": "text/html"}, b"<html>Sorry, there is nothing here."
        return 200, {}, tree[call.path]

    def _tree(self, call: Call) -> Answer:
        repo, tree = self._repo(call), self._commit_of(call).tree
        files = []
        for name, content in sorted(tree.items()):
            member = {"type": "file", "path": name, "size": len(content), "oid": git_name(content)}
            if repo.is_large(name, content):
                member["lfs"] = _pointer(content) | {"oid": _sha256(content)}
                if repo.xet:
                    member["xetHash"] = self._stored(content)
            files.append(member)
        return as_json(files)

    def _commits(self, call: Call) -> Answer:
        self._commit_of(call)
        listed = [
            {
                "id": commit.oid,
                "title": commit.title,
                "message": commit.message,
                "authors": [{"user": "tester"}],
                "date": "2026-11-20T12:00:00.000Z",
            }
            for commit in reversed(self._repo(call).commits)
        ]
        return as_json(listed)

    def _resolve(self, call: Call) -> Answer:
        commit = self._commit_of(call)
        if call.path not in commit.tree:
            raise Refusal(404, X_Error_Code="EntryNotFound")
        content = commit.tree[call.path]
        tags = {"ETag": f'"{git_name(content)}"', "X-Repo-Commit": commit.oid}
        repo = self._repo(call)
        if not repo.is_large(call.path, content):
            return 200, tags, content
        name, sha256 = self._stored(content), _sha256(content)
        tags |= {"X-Linked-ETag": f'"{sha256}"', "X-Linked-Size": str(len(content))}
        if repo.xet:
            token = f"{self.endpoint}/api/{call.resource}/xet-read-token/{commit.oid}"
            tags |= {"X-Xet-Hash": name, "Link": f'<{token}>; rel="xet-auth"'}
        return 302, tags | {"Location": f"{self.storage.endpoint}/bridge/{sha256}"}, b""

    def _stored(self, content: bytes) -> str:
        """Return the name of a large file in the storage, where it is put unless it was sent."""
        sha256 = _sha256(content)
        return self.storage.by_sha256.get(sha256) or self.storage.add(content)

    def _xet_read_token(self, call: Call) -> Answer:
        self._commit_of(call)
        return self._storage_token()

    def _xet_write_token(self, call: Call) -> Answer:
        self._repo(call, write=True)
        return self._storage_token()

    def _storage_token(self) -> Answer:
        endpoint, until = self.storage.endpoint, int(time.time()) + self.lives_s
        status, headers, body = as_json(
            {"casUrl": endpoint, "exp": until, "accessToken": CAS_TOKEN}
        )
        headers |= {"X-Xet-Cas-Url": endpoint, "X-Xet-Access-Token": CAS_TOKEN}
        return status, headers | {"X-Xet-Token-Expiration": str(until)}, body

    def _validate_yaml(self, call: Call) -> Answer:
        document = json.loads(call.body)
        content, space = document["content"], document["repoType"] == "space"
        header = content.partition("\n---\n")[0] if content.startswith("---\n") else ""
        if space and "\nsdk: " not in header:
            error = {"errors": [{"message": '"sdk" is required'}], "warnings": []}
            return 400, {}, json.dumps(error).encode()
        return as_json({"errors": [], "warnings": []})

    def _preupload(self, call: Call) -> Answer:
        repo = self._repo(call, write=True)
        head = repo.head.tree
        modes = []
        for file in json.loads(call.body)["files"]:
            lfs = repo.by_lfs(file["path"], file["size"])
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

    def _lfs_batch(self, call: Call) -> Answer:
        repo = self._repo(call, write=True)
        objects = []
        for member in json.loads(call.body)["objects"]:
            actions = {"upload": {"href": f"{self.endpoint}/lfs/{call.resource}/{member['oid']}"}}
            entry = {"oid": member["oid"], "size": member["size"]}
            objects.append(entry if member["oid"] in repo.large else entry | {"actions": actions})
        return as_json({"transfer": "basic", "objects": objects})

    def _lfs_put(self, call: Call) -> Answer:
        if hashlib.sha256(call.body).hexdigest() != call.path:
            raise Refusal(422)
        self.repos[call.resource].large[call.path] = call.body
        return 200, {}, b""

    def _commit(self, call: Call) -> Answer:
        repo = self._repo(call, write=True)
        if not repo.lock.acquire(blocking=False):
            raise Refusal(409)
        try:
            return self._make_commit(repo, [json.loads(line) for line in call.body.splitlines()])
        finally:
            repo.lock.release()

    def _make_commit(self, repo: Repo, lines: list[dict[str, Any]]) -> Answer:
        header = lines[0]["value"]
        # The real Hub takes a commit without a parent, too; no commit of ours may lack it.
        if header.get("parentCommit") != repo.head.oid:
            raise Refusal(412)
        tree = dict(repo.head.tree)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"], validate=True)
            elif line["key"] == "lfsFile":
                tree[value["path"]] = self._uploaded(repo, value["oid"])
            elif line["key"] == "deletedFile":
                if tree.pop(value["path"], None) is None:
                    raise Refusal(404, X_Error_Code="EntryNotFound")
            else:
                raise Refusal(400)
        made = repo.add(tree, header["summary"], header["description"])
        return as_json({"success": True, "commitOid": made.oid, "commitUrl": f"x/{made.oid}"})

    def _uploaded(self, repo: Repo, sha256: str) -> bytes:
        """Return the bytes of a large file, which must have been uploaded before the commit."""
        if sha256 not in repo.large:
            content = self.storage.content(sha256)
            if content is None:
                raise Refusal(400)
            repo.large[sha256] = content
        return repo.large[sha256]

    def _identity(self, call: Call) -> Answer:
        if call.token != "runner":  # noqa: S105 (what the runner of the tests is given)
            raise Refusal(401)
        return as_json({"value": f"identity for {call.query['audience'][0]}"})

    def _exchange(self, call: Call) -> Answer:
        document = json.loads(call.body)
        if self.trusted.get(document["subject_token"]) != document["resource"]:
            raise Refusal(403)
        return as_json({"access_token": WRITER, "token_type": "bearer", "expires_in": 3600})


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _pointer(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "pointerSize": 130}
