"""Write the files of a new board's repository into a folder, and make the first commit."""

import enum
import json
import os
import re
import string
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from geneb_ci import __version__
from geneb_ci.audit.sampling.design import policy_text
from geneb_ci.board.site.links import data_page
from geneb_ci.common.answers import ALONE, ANSWERS_FILE, saved_answers
from geneb_ci.common.benchmark import parse_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, is_practice
from geneb_ci.common.errors import UsageProblem, unwritable
from geneb_ci.common.shipped import shipped, shipped_files, toolkit_files
from geneb_ci.github.api import GITHUB_ADDRESS
from geneb_ci.github.settings.check_files import (
    CODE_OWNERS_FILE,
    ISSUE_FORMS,
    OWNER_PLACEHOLDER,
    board_workflows,
)
from geneb_ci.github.settings.client import MAIN_BRANCH
from geneb_ci.publish.git import refusal_in
from geneb_ci.publish.session import require_space
from geneb_ci.render.plain import visible
from reference_harness.formats.benchmark import Benchmark

APPROVERS_MIN = 2
"""Minimum number of maintainers' accounts, so that one can approve the changes of another."""
MAINTAINERS_FIX = (
    "write --maintainers @ORG/TEAM, or --maintainers @ONE --maintainers @TWO; for one person: "
    "--maintainers @ME --alone, which is weaker, since nobody else reviews the changes"
)
TOOLKIT_FOLDERS = ("geneb_ci", "reference_harness")
"""Folders with the code of the toolkit, which jobs run."""
MAINTAINED_FILES = frozenset(
    {"README.md", "SECURITY.md", "pyproject.toml", ".gitignore", ".gitattributes", CODE_OWNERS_FILE}
    | {"submissions/README.md", "leaderboard/README.md", ".github/dependabot.yml"}
    | {"leaderboard/policy/policy.toml", "leaderboard/policy/official.json"}
    | {"leaderboard/policy/trusted_root.json"}
)
"""Files that are written only once, since maintainers change them."""
NAME_KEYS_MARK = "x-names"
"""Key that marks the parts of a JSON schema whose members are named after tasks or regimes."""
LICENCE_PATH = "geneb_ci/LICENSE"
"""Licence of the toolkit, whose code goes into the repository."""
PRACTICE_ROW = "kmer-baseline"
"""Id of the model whose row a new practice board begins with."""
SHEBANG = b"#!"
"""First bytes of a script, whose file must be executable."""
COPIED_FILES = (".github/PULL_REQUEST_TEMPLATE.md", ".github/dependabot.yml", "RULES.md")
"""Shipped files that a board copies, besides those that its jobs need."""
_TOOLKIT_FILE = re.compile(r"\b((?:tools|requirements)/[\w-]+(?:\.\w+)?)")
"""Path of a file of the toolkit that a job runs or installs."""
_REPOSITORY_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}/[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
"""Form of OWNER/NAME of a repository on GitHub."""
_CODE_OWNER = re.compile(r"@[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[\w.-]{1,100})?", re.ASCII)
"""Form of a code owner: @NAME or @ORG/TEAM."""
_UNALTERED_SPACE_NAME = re.compile(r"[A-Za-z0-9-]{1,40}/[A-Za-z0-9-]{1,22}")
"""Names of Spaces whose address as a site consists of the same letters."""
FIRST_COMMIT_MESSAGE = "Set up the board"
GIT_SECONDS_MAX = 600  # time limit of one git command: a push of 3 MB over a slow line
_GIT_MESSAGE_MAX = 300  # characters of git's own message in a message of ours
_CREDENTIAL_HELPER = (
    """!f() { test "$1" = get && """
    """printf 'username=x-access-token\\npassword=%s\\n' "$GH_TOKEN"; }; f"""
)
"""Program that git asks for the token: it reads the environment, so no argument has the token."""


class BoardAnswers(NamedTuple):
    """The user's answers, from which a new repository is made."""

    repository: str
    """OWNER/NAME on GitHub."""
    space: str
    """OWNER/NAME on the Hub."""
    maintainers: str
    """Code owners: @ORG/TEAM, or accounts, @ONE @TWO."""
    is_alone: bool = False
    """Whether one account maintains the board alone, and so merges its own pull requests."""

    @property
    def text(self) -> str:
        """The text of the file that keeps the answers in the repository."""
        settings = {name: f'"{value}"' for name, value in self._asdict().items() if name != ALONE}
        lines = (f"{name} = {value}\n" for name, value in settings.items())
        return (
            "# Written by geneb-ci init, and read by it when it runs again in this repository.\n"
            + "".join(lines)
            + (f"{ALONE} = true\n" if self.is_alone else "")
        )


def completed_answers(
    root: Path,
    repository: str | None,
    space: str | None,
    maintainers: Sequence[str] = (),
    *,
    is_alone: bool = False,
) -> BoardAnswers:
    """Return the user's answers: the given options, else those that an earlier call saved.

    Raises UsageProblem without a repository, for a name that GitHub or the Hub would refuse, and if
    nobody could approve the changes of a maintainer.
    """
    earlier_values = saved_answers(root)
    repo = repository or earlier_values.get("repository", "")
    if not repo:
        raise UsageProblem(
            "the board's repository is not named",
            "pass --repo OWNER/NAME, the repository on GitHub (no file need be in it yet)",
        )
    owners = " ".join(maintainers) or earlier_values.get("maintainers", "")
    is_alone = is_alone or (not maintainers and ALONE in earlier_values)
    completed = BoardAnswers(repo, space or earlier_values.get("space", repo), owners, is_alone)
    if not _REPOSITORY_NAME.fullmatch(repo):
        raise UsageProblem(
            f"--repo {repo!r}: expected the form OWNER/NAME", "write --repo OWNER/NAME"
        )
    require_space(completed.space, "--space")
    _require_approval(completed)
    return completed


def _require_approval(answers: BoardAnswers) -> None:
    """Raise UsageProblem unless each maintainer's changes can be approved by another one."""
    owners = answers.maintainers.split()
    for owner in owners:
        if not _CODE_OWNER.fullmatch(owner):
            raise UsageProblem(
                f"--maintainers {owner!r}: expected @NAME or @ORG/TEAM", MAINTAINERS_FIX
            )
    if answers.is_alone and len(owners) == 1 and "/" not in owners[0]:
        return
    if answers.is_alone:
        raise UsageProblem(
            f"--alone is for one account; --maintainers names {answers.maintainers or 'nobody'}",
            MAINTAINERS_FIX,
        )
    if len({owner.casefold() for owner in owners}) < APPROVERS_MIN and not any(
        "/" in owner for owner in owners
    ):
        message = (
            f"only {owners[0]} is named as maintainer; nobody can approve their own pull request"
            if owners
            else "--maintainers is missing, expected a team or two accounts"
        )
        raise UsageProblem(message, MAINTAINERS_FIX)


def refuse_organisation(answers: BoardAnswers, owner: Mapping[str, Any]) -> None:
    """Raise UsageProblem if the organisation that owns the repository is named as code owner."""
    if owner.get("type") != "Organization":
        return
    login = f"@{owner.get('login', '')}".casefold()
    if login in answers.maintainers.casefold().split():
        raise UsageProblem(
            f"{login} is an organisation, which cannot be a code owner on GitHub",
            f"run `geneb-ci init --force --maintainers {login}/TEAM` for a team that may write, "
            "then commit .github/CODEOWNERS, which names the team",
        )


def benchmark_bytes(path: Path | None) -> bytes:
    """Return a valid benchmark definition, by default that of the practice benchmark.

    Raises UsageProblem for a missing or invalid file, and BadConfiguration for an invalid key.
    """
    if path is None:
        return shipped("schemas", PRACTICE_BENCHMARK).read_bytes()
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageProblem(
            f"{path}: cannot be read: {error.strerror}; expected the definition of a benchmark",
            "copy schemas/benchmark-mini.json, put in your tasks, their class counts, the data set "
            "and its revision, and pass it: --benchmark FILE",
        ) from error
    parse_benchmark(raw, str(path))
    return raw


def submission_schema(raw: bytes, benchmark: Benchmark) -> bytes:
    """Return the schema of a submission with the tasks and regimes of this benchmark."""
    schema = json.loads(raw)

    def rename(subschema: dict[str, Any], descriptions: Mapping[str, str]) -> None:
        property_schema = next(iter(subschema["properties"].values()))
        subschema["properties"] = {
            name: property_schema | ({"description": text} if text else {})
            for name, text in descriptions.items()
        }
        if "required" in subschema:
            subschema["required"] = list(descriptions)

    for subschema in schema["$defs"].values():
        if subschema.get(NAME_KEYS_MARK):
            rename(subschema, {task.id: task.label for task in benchmark.tasks})
    for subschema in schema["properties"].values():
        if subschema.get(NAME_KEYS_MARK):
            rename(subschema, dict.fromkeys(benchmark.regimes, ""))
    return json.dumps(schema, indent=2, ensure_ascii=False).encode() + b"\n"


def repository_files(answers: BoardAnswers, benchmark: bytes) -> dict[str, bytes]:
    """Return the content of every file of a new board by its path, except keys and rows."""
    definition = parse_benchmark(benchmark, "the benchmark")
    data_text, options = _task_data_texts(definition)
    template_values = {
        "title": answers.space.partition("/")[2],
        "benchmark": definition.name,
        "version": __version__,
        "data": data_text,
        "options": options,
        "site": _site_setting(answers.space),
        **answers._asdict(),
    }
    files = {path: shipped("repository", path).read_bytes() for path in copied_files()}
    files |= {path: file.read_bytes() for path, file in toolkit_files().items()}
    for shipped_part, folder, below in (
        ("schemas", "schemas", ""),
        ("page", "leaderboard", "src"),
        ("page", "leaderboard", "vendor"),
    ):
        files |= {
            f"{folder}/{path}": shipped(shipped_part, path).read_bytes()
            for path in shipped_files(below, shipped_part)
        }
    files |= {
        path: submission_schema(raw, definition)
        for path, raw in files.items()
        if path.startswith("schemas/submission-")
    }
    if LICENCE_PATH not in files:  # a repository that this command wrote already has it
        files[LICENCE_PATH] = shipped("repository", "LICENSE").read_bytes()
    owners = shipped("repository", CODE_OWNERS_FILE).read_text("utf-8")
    contact_links = shipped("repository", f"{ISSUE_FORMS}/config.yml").read_text("utf-8")
    return files | {
        "schemas/benchmark.json": benchmark,
        "leaderboard/index.html": shipped("page", "index.html").read_bytes(),
        "leaderboard/policy/policy.toml": policy_text(definition).encode(),
        "leaderboard/policy/trusted_root.json": shipped("policy", "trusted_root.json").read_bytes(),
        "leaderboard/policy/official.json": b'{\n "files": {}\n}\n',
        "leaderboard/README.md": filled_template("space.md.in", template_values),
        CODE_OWNERS_FILE: owners.replace(
            f"{OWNER_PLACEHOLDER}maintainers", answers.maintainers
        ).encode(),
        f"{ISSUE_FORMS}/config.yml": contact_links.replace(
            "OWNER/geneb-ci", answers.repository
        ).encode(),
        ANSWERS_FILE: answers.text.encode(),
        "README.md": filled_template("README.md.in", template_values),
        "SECURITY.md": filled_template("SECURITY.md.in", template_values),
        "submissions/README.md": filled_template("submissions.md.in", template_values),
        "pyproject.toml": filled_template("pyproject.toml.in", template_values),
        ".gitignore": b"/keys/\n__pycache__/\n",
        ".gitattributes": b"# Digests are of bytes: no line end is ever translated.\n* -text\n",
    }


def _task_data_texts(benchmark: Benchmark) -> tuple[str, str]:
    """Return texts of the README: how contributors get the task data, and the options of a run."""
    if is_practice(benchmark.sha256):
        return "The task data are part of the harness: a run needs no `--data`.", ""
    options = " --device cuda \\\n    --data DIR --benchmark schemas/benchmark.json"
    if data_page(benchmark):
        pull = "geneb-ci data pull DIR --benchmark schemas/benchmark.json"
        return f"`{pull}` downloads the pinned task data into DIR.", options
    return (
        "DIR is the folder of the task data, which the maintainers give to contributors.",
        options,
    )


def _site_setting(space: str) -> str:
    """Return the setting with the address at which the Hub serves a Space as a site.

    It is commented out if the Hub shortens or alters the name.
    """
    comment_mark = "" if _UNALTERED_SPACE_NAME.fullmatch(space) else "# "
    host = re.sub(r"[^a-z0-9]", "-", space.casefold())
    return f'{comment_mark}site = "https://{host}.static.hf.space"'


def copied_files() -> list[str]:
    """Return the paths of the shipped files that a board copies unchanged."""
    workflows = board_workflows()
    workflow_text = "\n".join(shipped("repository", path).read_text("utf-8") for path in workflows)
    return [
        *workflows,
        *shipped_files(ISSUE_FORMS),
        *COPIED_FILES,
        *sorted(set(_TOOLKIT_FILE.findall(workflow_text))),
    ]


def filled_template(file_name: str, values: dict[str, str]) -> bytes:
    """Return the text of a template file with its placeholders replaced by values."""
    text = resources.files("geneb_ci.init").joinpath("templates", file_name).read_text("utf-8")
    return string.Formatter().vformat(text, (), values).encode()


class FileStatus(enum.StrEnum):
    """How the folder's file compares with the planned one, which decides whether it is written."""

    WRITE = "write"
    """The folder does not have the file."""
    SAME = "same"
    """The folder's file has the planned content."""
    DIFFERS = "differs"
    """The folder's file has other content, and is overwritten with `--force`."""
    MAINTAINED = "yours"
    """The file differs, but maintainers change it, so it is never overwritten."""


class PlannedFile(NamedTuple):
    """A file that the plan may write, compared with the folder."""

    path: str
    status: FileStatus
    content: bytes


def file_plan(root: Path, files: Mapping[str, bytes]) -> list[PlannedFile]:
    """Return the plan of a folder: each file of a new board, compared with the folder's file.

    Raises UsageProblem for a file that cannot be read, or a path that leads out of the folder.
    """
    return [
        PlannedFile(path, _file_status(root, path, content), content)
        for path, content in sorted(files.items())
    ]


def _file_status(root: Path, path: str, content: bytes) -> FileStatus:
    """Return how a planned file compares with the folder's file."""
    file = path_inside(root, path)
    if not file.exists():
        return FileStatus.WRITE
    try:
        present_content = file.read_bytes()
    except OSError as error:
        raise UsageProblem(
            f"{file}: cannot be read: {error.strerror}",
            "move the file away, and run this command again",
        ) from error
    if present_content == content:
        return FileStatus.SAME
    return FileStatus.MAINTAINED if path in MAINTAINED_FILES else FileStatus.DIFFERS


def outdated_files(root: Path, files: Iterable[str]) -> list[str]:
    """Return the paths of toolkit modules in the folder that this version does not have."""
    files_of_version = set(files)
    modules = (path for name in TOOLKIT_FOLDERS for path in sorted((root / name).rglob("*.py")))
    return [
        name
        for path in modules
        if (name := path.relative_to(root).as_posix()) not in files_of_version
    ]


def path_inside(root: Path, path: str) -> Path:
    """Return the path of a file below a folder.

    Raises UsageProblem if the file or a folder of its path is a symbolic link.
    """
    file = root.joinpath(*path.split("/"))
    real = Path(os.path.realpath(file))
    if real != Path(os.path.realpath(root)).joinpath(*path.split("/")):
        raise UsageProblem(
            f"{file}: a symbolic link leads to {real}, where nothing may be written",
            "replace the link by an ordinary file or folder",
        )
    return file


def write_planned(root: Path, plan: Iterable[PlannedFile], *, force: bool) -> None:
    """Write the missing files and, with `force`, those that differ.

    Raises UsageProblem if a file cannot be written, or MachineFault if the disk is full.
    """
    for planned in plan:
        if planned.status is FileStatus.WRITE or (force and planned.status is FileStatus.DIFFERS):
            file = path_inside(root, planned.path)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(planned.content)
                if planned.content.startswith(SHEBANG):
                    file.chmod(0o755)
            except OSError as error:
                raise unwritable(str(file), error, "name another folder") from error


def plan_lines(plan: Iterable[PlannedFile], *, force: bool) -> list[str]:
    """Return a plan as lines: each file that differs, and the number of the others by folder."""
    plan = list(plan)
    file_counts = Counter((planned.status, planned.path.partition("/")[0]) for planned in plan)
    lines = [
        f"  write  {name}{'/' if any(file.path.startswith(f'{name}/') for file in plan) else ''}"
        f"{f'  {count} files' if count > 1 else ''}"
        for (status, name), count in file_counts.items()
        if status is FileStatus.WRITE
    ]
    verb = "overwrite" if force else "keep, it differs"
    lines += [
        f"  {verb}  {planned.path}" for planned in plan if planned.status is FileStatus.DIFFERS
    ]
    lines += [
        f"  keep, it is yours  {planned.path}"
        for planned in plan
        if planned.status is FileStatus.MAINTAINED
    ]
    same_count = sum(planned.status is FileStatus.SAME for planned in plan)
    return [*lines, f"  {same_count} files exist already"] if same_count else lines


def run_git(
    folder: Path,
    *arguments: str,
    accepted_codes: tuple[int, ...] = (0,),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Run git in a folder with the user's settings, and return its output.

    `accepted_codes` are the exit codes of success; `environment` is added to the environment.

    Raises UsageProblem, with git's own words, if git fails.
    """
    try:
        process = subprocess.run(  # noqa: S603 (arguments are fixed or checked names)
            ["git", "-C", str(folder), *arguments],  # noqa: S607 (the user's git)
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_SECONDS_MAX,
            env={**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **environment},
        )
    except FileNotFoundError as error:
        raise UsageProblem("git is not installed", "install git") from error
    except subprocess.TimeoutExpired as error:
        raise UsageProblem(
            f"{folder}: git {arguments[0]} took more than {GIT_SECONDS_MAX} s, and was stopped",
            f"run git {arguments[0]} yourself to see why; then run this command again",
        ) from error
    if process.returncode not in accepted_codes:
        refusal = refusal_in(process.stderr)
        raise UsageProblem(
            f"{folder}: git {arguments[0]} failed: {visible(refusal.message, _GIT_MESSAGE_MAX)}",
            refusal.fix,
        )
    return process.stdout.strip()


def has_commit(folder: Path) -> bool:
    """Whether a folder is the root of a git repository with a commit."""
    return (folder / ".git").exists() and bool(
        run_git(folder, "rev-parse", "--verify", "--quiet", "HEAD", accepted_codes=(0, 1, 128))
    )


def make_first_commit(folder: Path) -> bool:
    """Commit all files if there is no commit yet; return whether a commit was made."""
    if has_commit(folder):
        return False
    if not (folder / ".git").exists():
        run_git(folder, "init", "--quiet", f"--initial-branch={MAIN_BRANCH}")
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", FIRST_COMMIT_MESSAGE)
    return True


def has_uncommitted_changes(folder: Path) -> bool:
    """Whether files differ from those of the last commit."""
    return bool(run_git(folder, "status", "--porcelain"))


def remote_of(folder: Path, repository: str) -> tuple[str, bool]:
    """Return the address that a first push goes to, and whether it is already the remote origin.

    Raises UsageProblem if the remote origin is another repository.
    """
    server = os.environ.get("GITHUB_SERVER_URL", GITHUB_ADDRESS).rstrip("/")
    origin = run_git(folder, "config", "--get", "remote.origin.url", accepted_codes=(0, 1))
    address = origin or f"{server}/{repository}.git"
    if repository.casefold() not in address.casefold():
        raise UsageProblem(
            f"the remote origin is {visible(address)}, expected {repository}",
            f"run `git remote set-url origin {server}/{repository}.git`, then this command again",
        )
    return address, bool(origin)


def push_first_commit(folder: Path, repository: str) -> str:
    """Push HEAD as the main branch, which GitHub lacks, and return the address of the repository.

    Raises UsageProblem with the advice to push by hand.
    """
    server = os.environ.get("GITHUB_SERVER_URL", GITHUB_ADDRESS).rstrip("/")
    address, has_origin = remote_of(folder, repository)
    if not has_origin:
        run_git(folder, "remote", "add", "origin", address)
    credentials = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"credential.{server}.helper",
        "GIT_CONFIG_VALUE_0": _CREDENTIAL_HELPER,
    }
    try:
        run_git(
            folder,
            "push",
            "--quiet",
            "origin",
            f"HEAD:refs/heads/{MAIN_BRANCH}",
            environment=credentials,
        )
    except UsageProblem as error:
        raise UsageProblem(
            error.message,
            f"push the commit yourself (git push origin HEAD:{MAIN_BRANCH}), with a token that may "
            "write workflows; then run this command again",
        ) from error
    return address
