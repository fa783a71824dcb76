"""Proposes a longer log of audits: what was signed in one job is put on a branch by another.

usage: python3 -I tools/propose_log.py sign >> "$GITHUB_OUTPUT"
       python3 -I tools/propose_log.py propose

`sign` has the key in LOG_KEY and prints the new files of the log; `propose` takes them in FILES and
may write to the repository. Both read GH_TOKEN and what the runner sets. A longer log that waits on
the branch is merged first: a log that is signed twice from the same entries would have two heads.
GENEB_BEACON_FILE names a file with a round of the beacon, where no relay can be reached.
"""

import base64
import json
import lzma
import os
import re
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

BRANCH = "audit-log"
LOG = "leaderboard/audits/log"
_FILES = re.compile(rf"{LOG}/(checkpoint|tile/(entries|[0-9])(/[0-9x]+)+(\.p/[0-9]+)?)")
SECONDS_MAX = 30
# Linux passes at most 131,072 bytes in one variable: entries of some 500 signed files.
OUTPUT_MAX = 120_000
NOT_FOUND, EXISTS = 404, 422


class Refused(Exception):  # noqa: N818 (named after what is wrong)
    """Why nothing is signed or proposed: the message says what to do."""


def sign() -> str:
    """Extend the log in this checkout; return its new files as text, "" where nothing is new."""
    from geneb_ci.audit.record.keys import log_keys  # the job that writes has no packages
    from geneb_ci.audit.record.signing import append_to_log
    from geneb_ci.common.config import find_layout

    layout = find_layout(Path.cwd())
    if log_keys(layout) is None:
        _say("no log is kept here: leaderboard/policy/keys.json names none")
        return ""
    if _waiting() > _size(Path(LOG, "checkpoint")):
        _say(f"a longer log waits on the branch {BRANCH}: merge it, and this runs again")
        return ""
    key = os.environ.get("LOG_KEY", "")
    if not key:
        raise Refused("the environment audit-log has no secret GENEB_LOG_KEY: the log's key, PEM")
    beacon = os.environ.get("GENEB_BEACON_FILE")
    before = _contents()
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # mode 0600
        file.write(key if key.endswith("\n") else f"{key}\n")
        file.flush()
        batch, size = append_to_log(layout, Path(file.name), (), Path(beacon) if beacon else None)
    for one in batch.refused:
        _say(f"not added: {one.file}: {one.reason}")
    _say(f"{len(batch.entries)} added, {size} in all")
    new = {path: raw for path, raw in _contents().items() if before.get(path) != raw}
    text = {path: base64.b64encode(raw).decode() for path, raw in new.items()}
    packed = base64.b64encode(lzma.compress(json.dumps(text).encode())).decode() if text else ""
    if len(packed) > OUTPUT_MAX:
        raise Refused("too much is new for one job: run `geneb-ci audit log append` by hand once")
    return packed


def _contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(LOG).rglob("*") if path.is_file()}


def _size(checkpoint: Path) -> int:
    """Return how many entries a checkpoint is over; 0 without one."""
    return _number(checkpoint.read_bytes()) if checkpoint.is_file() else 0


def _number(note: bytes) -> int:
    return int(note.split(b"\n")[1])


def _waiting() -> int:
    """Return how many entries the log on the branch has; 0 without one."""
    try:
        found = _ask("GET", f"/contents/{LOG}/checkpoint?ref={BRANCH}")
    except urllib.error.HTTPError as error:
        if error.code == NOT_FOUND:
            return 0
        raise
    return _number(base64.b64decode(found["content"]))


def propose(packed: str) -> str:
    """Put the files on the branch, as one commit on the commit of this run; return its id."""
    files: dict[str, str] = json.loads(lzma.decompress(base64.b64decode(packed)))
    if wrong := sorted(path for path in files if not _FILES.fullmatch(path)):
        raise Refused(f"{wrong[0]!r} is no file of the log: nothing is proposed")
    parent = os.environ["GITHUB_SHA"]
    blobs = {
        path: _ask("POST", "/git/blobs", {"content": content, "encoding": "base64"})["sha"]
        for path, content in files.items()
    }
    entries = [
        {"path": path, "mode": "100644", "type": "blob", "sha": sha} for path, sha in blobs.items()
    ]
    base = _ask("GET", f"/git/commits/{parent}")["tree"]["sha"]
    tree = _ask("POST", "/git/trees", {"base_tree": base, "tree": entries})["sha"]
    body = {"message": "Extend the log of audits", "tree": tree, "parents": [parent]}
    sha = str(_ask("POST", "/git/commits", body)["sha"])
    try:
        _ask("POST", "/git/refs", {"ref": f"refs/heads/{BRANCH}", "sha": sha})
    except urllib.error.HTTPError as error:
        if error.code != EXISTS:
            raise
        _ask("PATCH", f"/git/refs/heads/{BRANCH}", {"sha": sha, "force": True})  # it was merged
    return sha


def _ask(verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(  # noqa: S310 (the runner's own address)
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GH_TOKEN']}",
            "Accept": "application/vnd.github+json",
        },
        method=verb,
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:  # noqa: S310
        return json.load(response)


def _say(text: str) -> None:
    """Print a line beside the output, and show it in the summary of the run as code."""
    print(text, file=sys.stderr)
    plain = text.encode("ascii", "replace").decode().replace("`", "'")
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as summary:
        summary.write(f"    {plain}\n")


def main() -> int:
    """Sign or propose; return the exit code."""
    try:
        if sys.argv[1:] == ["sign"]:
            print(f"files={sign()}")
            return 0
        sha = propose(os.environ["FILES"])
        _say(f"{sha}: open the pull request: gh pr create --head {BRANCH} --base main --fill")
    except (Refused, OSError, ValueError, KeyError, TypeError) as error:
        print(f"nothing was proposed: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if not hasattr(error, "exit_code"):
            raise
        print(f"{error}\n  fix: {getattr(error, 'fix', '')}", file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
