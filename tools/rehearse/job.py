"""Runs one job: prepares an empty folder and the contexts, then runs its steps in order."""

import os
import secrets
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.github.server import REPOSITORY
from tests.house.workflow_file import Workflow, read
from tools.rehearse import shell, standins
from tools.rehearse.expressions import (
    ExpressionError,
    StrictContext,
    as_text,
    condition,
    status_functions,
    substitute,
)
from tools.rehearse.machine import PASSED
from tools.rehearse.triggers import Event
from tools.rehearse.workflow import Unsound

if TYPE_CHECKING:
    from tools.rehearse.world import World

_PATH = ["/usr/local/bin", "/usr/bin", "/bin"]
_HANG_S = 900  # a step that takes longer is ended, even if its job allows more


@dataclass
class Step:
    """The result of a step."""

    name: str
    conclusion: str
    seconds: float = 0.0
    note: str = ""
    log: str = ""


@dataclass
class Outcome:
    """The result of a job."""

    job: str
    conclusion: str = "success"
    outputs: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    summary: str = ""
    intended: bool = False
    """Whether the story expects the job to fail."""

    @property
    def seconds(self) -> float:
        """Duration of all steps together."""
        return sum(step.seconds for step in self.steps)

    @property
    def log(self) -> str:
        """The output of all steps."""
        return "\n".join(step.log for step in self.steps if step.log)


class Job:
    """One run of a job."""

    def __init__(
        self,
        world: "World",
        workflow: Workflow,
        name: str,
        tree: dict[str, Any],
        event: Event,
        contexts: dict[str, Any],
        granted: frozenset[str],
    ) -> None:
        self.world, self.workflow, self.name, self.tree = world, workflow, name, tree
        self.event, self.granted = event, granted
        self.outcome = Outcome(f"{workflow.name.removesuffix('.yml')}.{name}")
        self.token = f"ghs_{secrets.token_hex(18)}"
        root = world.runner
        shutil.rmtree(root, ignore_errors=True)
        self.home, self.temp, self.tools = root / "home", root / "temp", root / "tools"
        self.files, self.host = root / "files", root / "host"
        self.workspace = root / "work/board/board"
        for folder in (self.home, self.temp, self.tools, self.files, self.workspace):
            folder.mkdir(parents=True)
        standins.write_host_programs(self.host)
        self.path: list[str] = []
        """Folders that steps put first on PATH."""
        self.exported: dict[str, str] = {}
        """Environment variables that steps set for later steps."""
        self.installed: list[str] = []
        """Keys of the install steps so far."""
        self.is_pristine = True
        """Whether only install steps have run so far, whose results can be restored."""
        self.count = 0
        """Number of steps so far."""
        self.context = contexts | {"github": self._github(), "runner": self._runner()}
        self.summary = self.files / "summary"
        self.summary.touch()

    def _github(self) -> StrictContext:
        event, server = self.event, self.world.forge.address
        return StrictContext(
            {
                "token": self.token,
                "event": event.payload,
                "event_name": event.name,
                "sha": event.sha,
                "ref": event.ref,
                "ref_name": event.ref.removeprefix("refs/heads/").removeprefix("refs/pull/"),
                "head_ref": event.head,
                "base_ref": event.branch if event.name == "pull_request" else "",
                "repository": REPOSITORY,
                "repository_owner": REPOSITORY.partition("/")[0],
                "actor": "stranger" if event.fork else "maintainer",
                "workflow": self.workflow.tree.get("name", self.workflow.name),
                "workflow_sha": event.sha,
                "job": self.name,
                "run_id": "1",
                "run_number": "1",
                "run_attempt": "1",
                "api_url": server,
                "server_url": self.world.forge.clones,
                "workspace": str(self.workspace),
            }
        )

    def _runner(self) -> StrictContext:
        return StrictContext(
            {
                "os": "Linux",
                "arch": "X64",
                "temp": str(self.temp),
                "tool_cache": str(self.tools),
                "debug": "",
            }
        )

    def _variables(self) -> dict[str, str]:
        """Return the environment variables that a runner sets; few come from this machine."""
        passed = {name: os.environ[name] for name in PASSED if name in os.environ}
        github = self.context["github"]
        variables = {
            f"GITHUB_{name.upper()}": github[name]
            for name in github
            if name not in {"token", "event"}
        }
        event_file = self.files / "event.json"
        event_file.write_text(self.world.encoded(self.event), encoding="utf-8")
        identity = {}
        if "id_token:write" in self.granted:
            identity = {
                "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.world.forge.address}/identity",
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": self.world.new_identity_token(self),
            }
        return {
            **passed,
            **self.world.machine_variables,
            **variables,
            **identity,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_PATH": str(event_file),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64",
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_TOOL_CACHE": str(self.tools),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([*self.path, str(self.host), *_PATH]),
        } | self.exported

    def run(self) -> Outcome:
        """Run the steps. After a failed step, only those run whose `if:` allows it."""
        self.world.forge.grants[self.token] = self.granted
        self.world.forge.denied.clear()
        self.world.forge.used.clear()
        try:
            steps: dict[str, Any] = StrictContext()
            self._run_steps(self.tree["steps"], self.context | {"steps": steps}, {})
            outputs = self.tree.get("outputs", {})
            filled = self.context | {"steps": steps}
            self.outcome.outputs = {k: substitute(v, filled) for k, v in outputs.items()}
        except (ExpressionError, Unsound, RuntimeError) as error:
            self._add_failure("outputs", str(error))
        finally:
            if denied := self.world.forge.denied:  # even if the job went on regardless
                self._add_failure("permissions", "\n".join(sorted(set(denied))))
            job = self.outcome.job.split(" ")[0]
            self.world.used.setdefault(job, set()).update(self.world.forge.used)
            del self.world.forge.grants[self.token]
            self.world.forge.identities.clear()
        self.outcome.summary = self.summary.read_text(encoding="utf-8")
        return self.outcome

    def _add_failure(self, step: str, why: str, seconds: float = 0.0) -> None:
        self.outcome.conclusion = "failure"
        self.outcome.steps.append(Step(step, "failure", seconds, log=why))

    def _run_steps(
        self, steps: list[dict[str, Any]], contexts: dict[str, Any], more: dict[str, str]
    ) -> bool:
        """Run the steps of a job or a composite action; return whether all succeeded."""
        has_succeeded = True
        for step in steps:
            self.count += 1
            step_name = step.get("name") or step.get("uses") or step.get("run", "").strip()
            title = step_name.splitlines()[0].split(" #")[0][:70]
            begun = time.monotonic()
            contexts |= status_functions(success=has_succeeded)
            try:
                if not condition(
                    step.get("if"), self._with_environment(contexts, more), success=has_succeeded
                ):
                    self._set_result(step, contexts, {}, "skipped")
                    self.outcome.steps.append(Step(title, "skipped"))
                    continue
                step_succeeded, outputs = self._run_step(step, title, contexts, more)
            except (ExpressionError, Unsound, RuntimeError) as error:
                self.outcome.steps.append(
                    Step(title, "failure", time.monotonic() - begun, log=str(error))
                )
                step_succeeded, outputs = False, {}
            tolerated = substitute(step.get("continue-on-error", "false"), contexts) == "true"
            self._set_result(step, contexts, outputs, "success" if step_succeeded else "failure")
            if not step_succeeded and tolerated:
                # GitHub goes on silently; the rehearsal shows it, or nobody would notice.
                self.outcome.steps[-1].note = "on GitHub, continue-on-error hides this failure"
            self.outcome.conclusion = self.outcome.conclusion if step_succeeded else "failure"
            has_succeeded = has_succeeded and (step_succeeded or tolerated)
        return has_succeeded

    @staticmethod
    def _set_result(
        step: dict[str, Any], contexts: dict[str, Any], outputs: dict[str, str], conclusion: str
    ) -> None:
        if "id" in step:
            contexts["steps"][step["id"]] = {
                "outputs": outputs,
                "outcome": conclusion,
                "conclusion": conclusion,
            }

    def _with_environment(self, contexts: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
        return contexts | {"env": {**self.exported, **env}}

    def _run_step(
        self, step: dict[str, Any], title: str, contexts: dict[str, Any], more: dict[str, str]
    ) -> tuple[bool, dict[str, str]]:
        """Run one step; return whether it succeeded, and its outputs."""
        env = dict(more)
        for tree in (self.workflow.tree, self.tree, step):
            for key, expression in tree.get("env", {}).items():
                env[key] = substitute(expression, self._with_environment(contexts, env))
        contexts_of_step = self._with_environment(contexts, env)
        begun = time.monotonic()
        if "uses" in step:
            inputs = {
                key: substitute(v, contexts_of_step) for key, v in step.get("with", {}).items()
            }
            if step["uses"].startswith(("./", "$/")):
                return self._run_composite(step["uses"], inputs, env)
            action = step["uses"].partition("@")[0]
            if action not in standins.ACTIONS:
                raise Unsound(f"{action}: the rehearsal has no stand-in for this action")
            outputs = standins.ACTIONS[action](self, inputs)
            if action == "actions/checkout":
                standins.replace_ci_run(self)
            self.outcome.steps.append(Step(title, "success", time.monotonic() - begun, "stand-in"))
            return True, outputs
        if "run" not in step:
            raise Unsound("a step has neither `run` nor `uses`")
        return self._run_script(step, title, substitute(step["run"], contexts_of_step), env)

    def _run_composite(
        self, uses: str, inputs_passed: dict[str, str], env: dict[str, str]
    ) -> tuple[bool, dict[str, str]]:
        """Run a composite action of the workflow's commit (`$/`) or of the workspace (`./`)."""
        root = self.workspace
        if uses.startswith("$/"):
            root = self.world.runner / "actions"
            if not root.exists():
                standins.clone(self.world.forge.repository, root, self.event.sha, depth=1)
        folder = root / uses[2:]
        action = read(folder / "action.yml").tree
        if action["runs"]["using"] != "composite":
            raise Unsound(f"{uses}: the rehearsal can run only composite actions")
        declared = action.get("inputs", {})
        if unknown := sorted(set(inputs_passed) - set(declared)):
            raise Unsound(f"{uses}: the action has no input {unknown[0]!r}")
        inputs = StrictContext(
            {
                k: inputs_passed.get(k, substitute(v.get("default", ""), self.context))
                for k, v in declared.items()
            }
        )
        steps = StrictContext()
        contexts = self.context | {"inputs": inputs, "steps": steps}
        contexts["github"] = StrictContext(self.context["github"] | {"action_path": str(folder)})
        has_succeeded = self._run_steps(
            action["runs"]["steps"], contexts, env | {"GITHUB_ACTION_PATH": str(folder)}
        )
        outputs = {
            k: substitute(v["value"], contexts) for k, v in action.get("outputs", {}).items()
        }
        return has_succeeded, outputs

    def _run_script(
        self, step: dict[str, Any], title: str, script: str, env: dict[str, str]
    ) -> tuple[bool, dict[str, str]]:
        """Run a script, or restore the result of an equal install step."""
        begun = time.monotonic()
        installs = self.world.environments
        folders = [self.tools, self.temp]
        root = Path(env.get("GITHUB_ACTION_PATH", self.workspace))
        while not (root / "requirements").is_dir() and root != root.parent:
            root = root.parent
        surroundings = [
            *self.installed,
            *self.path,
            str(root),
            *map(str, sorted(self.tools.iterdir())),
        ]
        digest = installs.key(script, root, surroundings) if self.is_pristine else None
        if digest and self.world.borrow:
            action = "GITHUB_ACTION_PATH" in env
            environment = self.temp / "geneb-ci" if action else next(self.tools.iterdir())
            installs.borrow(environment, root)
            self.outcome.steps.append(Step(title, "success", 0.0, "left out: --borrow"))
            return True, {}
        if digest and (job := installs.restore(digest, folders)) is not None:
            self.installed.append(digest)
            note = f"the environment of {job}"
            self.outcome.steps.append(Step(title, "success", time.monotonic() - begun, note))
            return True, {}
        output, exported = self.files / f"output-{self.count}", self.files / f"env-{self.count}"
        for file in (output, exported):
            file.touch()
        variables = self._variables() | env
        variables |= {
            "GITHUB_OUTPUT": str(output),
            "GITHUB_ENV": str(exported),
            "GITHUB_PATH": str(self.files / "path"),
        }
        cwd = self.workspace / step.get("working-directory", "")
        limit = min(_HANG_S, 60 * float(as_text(self.tree.get("timeout-minutes", "360"))))
        file = self.files / f"step-{self.count}.sh"
        ended = shell.run(script, step.get("shell", ""), file, variables, cwd, limit)
        seconds = time.monotonic() - begun
        if digest and not ended.code:
            installs.keep(digest, self.outcome.job, folders)
            self.installed.append(digest)
        elif not digest:
            self.is_pristine = False
        step_succeeded = ended.code == 0
        self.outcome.steps.append(
            Step(
                title,
                "success" if step_succeeded else "failure",
                seconds,
                "" if step_succeeded else f"exit code {ended.code}",
                ended.output,
            )
        )
        self.exported |= shell.values(exported)
        return step_succeeded, shell.values(output)
