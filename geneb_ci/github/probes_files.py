"""Reads files of main, and what the Hub shows of the Space: what is wrong, or None."""

import os
import re

from geneb_ci.audit.record.keys import KeyFile
from geneb_ci.audit.sampling.design import parse_policy, require_drawable
from geneb_ci.common.benchmark import parse_benchmark
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.shipped import shipped, shipped_files
from geneb_ci.github.api import STATUS_CONTEXT
from geneb_ci.github.errors import Unseen
from geneb_ci.github.observed import Observed, blob_id
from geneb_ci.github.probes import Probe, named_space, rules
from geneb_ci.render.plain import visible

WORKFLOWS, ACTIONS, FORMS = ".github/workflows", ".github/actions", ".github/ISSUE_TEMPLATE"
OWN_WORKFLOWS = frozenset({"ci.yml", "docs.yml"})
"""Workflows of the toolkit's own development, which a board does not need."""
OWNERS = ".github/CODEOWNERS"
OWNER_PLACEHOLDER = "@ORG/"
PLACEHOLDER = re.compile(r"\bOWNER/[\w-]+")
WITH_PLACEHOLDERS = ("README.md", "SECURITY.md", f"{FORMS}/config.yml")
KEYS = "leaderboard/policy/keys.json"
BENCHMARK, POLICY = "schemas/benchmark.json", "leaderboard/policy/policy.toml"
ESSENTIAL = (BENCHMARK, POLICY, "leaderboard/policy/official.json", "leaderboard/README.md")
"""Without these a board is built by the shipped benchmark and policy, or not at all."""
PRIVATE = (".pem", ".key")
SHOWN_MAX = 5  # names of files in one message


def board_workflows() -> list[str]:
    """Return the paths of the shipped workflows and actions that a board runs."""
    paths = [*shipped_files(WORKFLOWS), *shipped_files(ACTIONS)]
    return [path for path in paths if path.rpartition("/")[2] not in OWN_WORKFLOWS]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(visible(name) for name in names[:SHOWN_MAX]) + more


_PIN = re.compile(rb"@[0-9a-f]{40} # v[0-9.]+$", re.MULTILINE)
"""Commit of an action, with its version."""


def workflows(seen: Observed) -> str | None:
    """Compare the workflows of main with the shipped ones, apart from the commits of actions.

    Dependabot moves these to newer releases.
    """
    present = seen.blobs()
    expected = {path: shipped("repository", path).read_bytes() for path in board_workflows()}
    missing = [path for path in expected if path not in present]
    changed = [
        path
        for path, raw in expected.items()
        if present.get(path, blob_id(raw)) != blob_id(raw)
        and _PIN.sub(b"@", seen.content(path) or b"") != _PIN.sub(b"@", raw)
    ]
    parts = [f"missing: {_listed(missing)}"] if missing else []
    parts += [f"not those of this version: {_listed(changed)}"] if changed else []
    return "; ".join(parts) or None


def merge_queue(seen: Observed) -> str | None:
    """Look for a merge queue that would wait forever for its status."""
    if not rules(seen, "merge_queue"):
        return None
    texts = (seen.content(path) or b"" for path in seen.folder(WORKFLOWS))
    if any(re.search(rb"^ +merge_group:", text, re.MULTILINE) for text in texts):
        return None
    return f"main has a merge queue, and no workflow sets {STATUS_CONTEXT} on its commits"


def present(*paths: str) -> Probe:
    """Return a probe for files of main."""

    def probe(seen: Observed) -> str | None:
        there = seen.blobs()
        missing = [path for path in paths if path not in there]
        return f"missing: {_listed(missing)}" if missing else None

    return probe


def policy(seen: Observed) -> str | None:
    """Look for benchmark, policy and Space card, and whether the benchmark has what is drawn."""
    if missing := present(*ESSENTIAL)(seen):
        return missing
    try:
        benchmark = parse_benchmark(seen.content(BENCHMARK) or b"", BENCHMARK)
        audit_policy = parse_policy(seen.content(POLICY) or b"", POLICY)
        require_drawable(audit_policy, benchmark, POLICY)
    except BadConfiguration as error:
        return visible(error.message)
    return None


def forms(seen: Observed) -> str | None:
    """Compare whether main has every issue form."""
    return present(*shipped_files(FORMS))(seen)


def owned_folders() -> list[str]:
    """Return the folders that the shipped list of code owners names."""
    text = shipped("repository", OWNERS).read_text("utf-8")
    return re.findall(r"^/(\S+)/\s", text, re.MULTILINE)


def code_owners(seen: Observed) -> str | None:
    """Compare whether every folder that maintainers own has an owner."""
    raw = seen.content(OWNERS)
    if raw is None:
        return f"missing: {OWNERS}"
    text = raw.decode("utf-8", "replace")
    if OWNER_PLACEHOLDER in text:
        return f"{OWNER_PLACEHOLDER}... is a placeholder"
    owned = re.findall(r"^/?(\S+?)/?\s+@\S+", text, re.MULTILINE)
    missing = [name for name in owned_folders() if name not in owned and "*" not in owned]
    return f"no owner of: {', '.join(missing)}" if missing else None


def code_owner_errors(seen: Observed) -> str | None:
    """Return the errors that GitHub finds in the list of code owners."""
    errors = (seen.get("/codeowners/errors", "Contents: read") or {}).get("errors", ())
    return "; ".join(visible(f"line {error['line']}: {error['kind']}") for error in errors) or None


def placeholders(seen: Observed) -> str | None:
    """List the files of main in which no account was put in place of OWNER."""
    problems = []
    for path in WITH_PLACEHOLDERS:
        raw = seen.content(path)
        if raw is None:
            problems.append(f"{path} is missing")
        elif named := PLACEHOLDER.search(raw.decode("utf-8", "replace")):
            problems.append(f"{path} has {named[0]}")
    return "; ".join(problems) or None


def private_keys(seen: Observed) -> str | None:
    """List files of main that are private keys by their names."""
    paths = [path for path in seen.blobs() if path.endswith(PRIVATE)]
    return f"in the repository: {_listed(paths)}" if paths else None


def _keys(seen: Observed) -> KeyFile | str:
    raw = seen.content(KEYS)
    if raw is None:
        return f"missing: {KEYS}"
    try:
        return KeyFile.model_validate_json(raw)
    except ValueError:
        return f"{KEYS} cannot be read"


def audit_key(seen: Observed) -> str | None:
    """Compare whether a key may sign audits now."""
    key_file = _keys(seen)
    if isinstance(key_file, str):
        return key_file
    usable = [key for key in key_file.keys if key.valid_until is None and key.revoked_at is None]
    return None if usable else f"{KEYS} has no key that may sign audits now"


def log_key(seen: Observed) -> str | None:
    """Compare whether the log of audits has a key of its own."""
    key_file = _keys(seen)
    if isinstance(key_file, str):
        return key_file
    if key_file.log is None:
        return f"{KEYS} names no log"
    signing = {key.raw for key in key_file.keys}
    if any(signer.raw in signing for signer in key_file.log.signers):
        return "the key of the log also signs audits"
    return None


# The Hub.


_NO_SPACE = (401, 404)
"""The Hub answers 401 instead of 404 to a caller without a token."""


def space(seen: Observed) -> str | None:
    """Compare whether the Space exists and serves files as they are."""
    name = named_space(seen)
    if name is None:
        return "no Space is named"
    try:
        from huggingface_hub import HfApi  # a second to import
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.utils import httpx
    except ImportError:
        raise Unseen("the Hub's client is missing", "pip install 'geneb-ci[hub]'") from None
    try:
        info = HfApi(endpoint=os.environ.get("HF_ENDPOINT")).space_info(name)
    except (HfHubHTTPError, httpx.HTTPError, ValueError) as error:
        if isinstance(error, HfHubHTTPError) and error.response.status_code in _NO_SPACE:
            return f"the Hub finds no Space {name}"
        raise Unseen(
            f"the Hub did not show {name}: {type(error).__name__}", "run this again later"
        ) from error
    return None if info.sdk in {"static", None} else f"the Space {name} runs {info.sdk}"


PUBLISH_RUNS = "/actions/workflows/publish.yml/runs"


def trusted_publisher(seen: Observed) -> str | None:
    """Look for a run of the workflow that published; the Hub shows a binding to nobody else.

    Raises Unseen where none has succeeded yet.
    """
    reply = seen.get(PUBLISH_RUNS, "Actions: read", branch="main", status="success", per_page=1)
    if not (reply or {}).get("total_count"):
        raise Unseen(
            "the Hub has no interface that shows it, and no run of publish.yml has succeeded",
            "set it by hand, then: gh workflow run publish.yml",
        )
    return None
