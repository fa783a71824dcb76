"""What the commands on commits share: the repository, and one build of a commit."""

from geneb_ci.cli.folder import WATCH, layout_here, refused
from geneb_ci.errors import Exit, UsageProblem
from geneb_ci.publish.generation import Generation, generate
from geneb_ci.publish.git import Repository
from geneb_ci.publish.token import space_of_environment
from geneb_ci.publish.working import repository_at

HEAD = "HEAD"


def repository_here() -> Repository:
    """Give the repository of submissions that the current folder lies in.

    Raises UsageProblem, and BadRepository where the submissions do not lie at its root.
    """
    return repository_at(layout_here())


def built(repository: Repository, commit: str) -> tuple[Exit, Generation | None]:
    """Build all files of a commit; where a check fails, print why and give the exit code."""
    report, made = generate(repository, repository.resolve(commit), WATCH)
    return (Exit.CLEAN, made) if made is not None else (refused(report), None)


def space_name(given: str | None) -> str:
    """Give the Space to work on, as OWNER/NAME. Raises UsageProblem."""
    name = given or space_of_environment()
    if name is None:
        raise UsageProblem(
            "no Space is named",
            "name it: --space OWNER/NAME, or HF_OIDC_RESOURCE=spaces/OWNER/NAME",
        )
    owner, slash, rest = name.partition("/")
    if not (owner and slash and rest) or "/" in rest:
        raise UsageProblem(f"{name!r} is no Space", "name it as OWNER/NAME")
    return name
