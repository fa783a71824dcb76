"""The commands `run`, `data`, `extractor` and `probe`, which run the harness."""

import subprocess
import tempfile
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from geneb_ci.cli.main import HELP_ARGUMENTS, echo, harness_command_line, run_harness, say
from geneb_ci.common.benchmark import load_benchmark, shipped_benchmark
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.common.finding import first_and_more
from reference_harness.formats.text import plural


def _matching_subcommands(subcommands: dict[str, str], incomplete: str) -> list[CompletionItem]:
    """Return the subcommands that begin with `incomplete`, for completion in a shell."""
    return [
        CompletionItem(name, help=text)
        for name, text in subcommands.items()
        if name.startswith(incomplete)
    ]


def harness_command(
    name: str, help_text: str, subcommands: dict[str, str] | None = None
) -> click.Command:
    """Return a command that runs `geneb-harness` with its arguments.

    The harness replaces the process (exec), so that stopping the command stops the work. Only
    --help runs in a child process, because this program may print text after it. `subcommands` has
    the help text of each subcommand by name, for completion in a shell.
    """

    def complete(
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG001 (click's own signature)
        incomplete: str,
    ) -> list[CompletionItem]:
        return (
            []
            if ctx.params.get("arguments")
            else _matching_subcommands(subcommands or {}, incomplete)
        )

    @click.command(
        name,
        help=help_text,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument(
        "arguments",
        nargs=-1,
        type=click.UNPROCESSED,
        shell_complete=complete if subcommands else None,
    )
    @click.pass_context
    def run(ctx: click.Context, arguments: tuple[str, ...]) -> int:
        return run_harness(ctx.info_name or name, *arguments)

    return run


PUSH_HELP = "Upload a new revision"
DATA_SUBCOMMANDS = {
    "audit": "Report duplicates, leakage, balance and lengths.",
    "define": "Make a benchmark of your own task files.",
    "manifest": "Print the manifest of a folder without writing it.",
    "pull": "Download the pinned task data into FOLDER and write a manifest.",
    "stage": "Write task data in both layouts, ready to push.",
    "verify": "Verify the files of FOLDER against its manifest.",
}
"""Help texts of the subcommands of `geneb-harness data`, for completion in a shell."""
EXTRACTOR_SUBCOMMANDS = {
    "check": "Check the properties of an extractor that scores depend on.",
    "digest": "Print path, class and digest of the built-in extractor NAME.",
    "list": "List the built-in extractors.",
}
"""Help texts of the subcommands of `geneb-harness extractor`, for completion in a shell."""
DATA_HELP = "Pull, verify, audit and stage the pinned task data, or push a new revision of them."
_harness_data_command = harness_command("data", DATA_HELP)


class _Data(click.Group):
    """The group `data`: it implements `push`, and runs the harness for every other subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, and parse those of `push` as click does."""
        ctx.meta["geneb_ci.arguments"] = list(args)
        return super().parse_args(ctx, args if args[:1] == ["push"] else [])

    def invoke(self, ctx: click.Context) -> object:
        """Run `push`, or the harness with all arguments."""
        arguments = ctx.meta["geneb_ci.arguments"]
        if arguments[:1] == ["push"]:
            return super().invoke(ctx)
        exit_code = ctx.invoke(_harness_data_command, arguments=tuple(arguments))
        if tuple(arguments) in HELP_ARGUMENTS:
            line = f"  push      {PUSH_HELP}: geneb-ci data push --help"
            echo(line, err=not arguments)  # like the help above it
        return exit_code

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the subcommands of both programs that begin with `incomplete`."""
        return _matching_subcommands(DATA_SUBCOMMANDS | {"push": f"{PUSH_HELP}."}, incomplete)


@click.group("data", cls=_Data, invoke_without_command=True, help=DATA_HELP, add_help_option=False)
def data_command() -> None:
    """Group of the subcommand `push`."""


@data_command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--repo", metavar="OWNER/NAME", help="Data set; default: the one in the benchmark.")
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Benchmark definition; default: GENEB.",
)
def push(folder: Path, repo: str | None, definition: Path | None) -> int:
    """Upload the tasks in FOLDER, in both layouts with a card, and print the revision to pin.

    Before a token is read, every task is compared with the benchmark; no task may be missing.
    """
    # Imported here: only push needs them.
    from geneb_ci.publish.session import find_token
    from geneb_ci.publish.space import HubRepository, files_of_folder, upload_files
    from geneb_ci.receipt.source import REPOSITORY_PATTERN

    if repo is not None and not REPOSITORY_PATTERN.fullmatch(repo):
        raise UsageProblem(f"--repo {repo!r} is not OWNER/NAME", "pass for example --repo me/tasks")
    benchmark = load_benchmark(definition) if definition else shipped_benchmark()
    if missing_tasks := [task for task in benchmark.task_ids if not _has_task(folder, task)]:
        raise NothingChecked(
            f"{folder} lacks {plural(len(missing_tasks), 'task')} of {benchmark.name}: "
            f"{first_and_more(missing_tasks)}",
            f"name a folder with every task; to fetch them: geneb-ci data pull {folder}",
        )
    repository = repo or benchmark.dataset.repo_id
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as folder_name:
        options = ["--benchmark", str(definition)] if definition else []
        command = [
            *harness_command_line(),
            "data",
            "stage",
            *options,
            "--",
            str(folder),
            folder_name,
        ]
        process = subprocess.run(command, check=False)  # noqa: S603 (our own module)
        if process.returncode:
            return process.returncode
        remote = HubRepository("dataset", repository, token=find_token(f"datasets/{repository}"))
        uploaded = upload_files(remote, files_of_folder(Path(folder_name)), say=say)
    echo(f"{remote.resource}: {'pushed' if uploaded.is_new else 'nothing changed'}")
    echo(f"revision to pin in schemas/benchmark.json: {uploaded.commit}")
    return Exit.CLEAN


def _has_task(folder: Path, task: str) -> bool:
    """Whether a folder contains a task, in any layout that the harness reads."""
    files = (folder / f"{task}.csv", folder / f"{task}.csv.gz")
    return any(path.exists() for path in (*files, folder / "tasks" / task, folder / task))


extractor_command = harness_command(
    "extractor", "Check an extractor, or list those that are built in.", EXTRACTOR_SUBCOMMANDS
)
probe_command = harness_command(
    "probe", "Fit other probes on receipts, and compare the ranks that follow."
)
run_command = harness_command(
    "run", "Run a model on the tasks; write a run record and a submission."
)
