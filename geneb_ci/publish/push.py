"""Publish the newest generation, or as a rollback an earlier one, as one commit on the Space."""

import enum
import hashlib
import re
import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from geneb_ci.audit.record.old_log import (
    CHECKPOINT,
    CHECKPOINT_BYTES_MAX,
    LINKS_STEP,
    LogBroken,
    check_extends,
)
from geneb_ci.audit.record.published import (
    STATEMENTS_BYTES_MAX,
    STATEMENTS_PATH,
    published_losses,
    statements_in,
)
from geneb_ci.common.errors import UsageProblem
from geneb_ci.publish.faults import HubRefused, NotFastForward, SpaceDiffers
from geneb_ci.publish.generation import PUBLISHED_LOG_FOLDER, Generation
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.manifest import MANIFEST_FILE, Manifest, Rollback
from geneb_ci.publish.session import Clock
from geneb_ci.publish.space import RepositoryState, Space, SpaceChange, SpaceState, commit_change
from geneb_ci.receipt.cells import network_text
from reference_harness.formats.text import Say, plural, silent

PROGRESS_BYTES_MIN = 25_000_000
"""Bytes from which the expected time of an upload is printed: fewer take under two seconds at
100 Mbit/s."""
ID_DIGITS_SHOWN = 12  # hex digits of a digest in messages
LOST_STATEMENTS_MAX = 10
"""Maximum number of signed statements missing from the new board that a message names."""
NO_STATEMENTS = "none"
"""In the message of a commit, in place of a digest: the generation has no list of statements."""
_STATEMENTS_LINE = re.compile(rf"^Statements: ([0-9a-f]{{64}}|{NO_STATEMENTS})$", re.MULTILINE)
"""Line of a commit's message with the digest of the generation's list of statements."""


class PublishOutcome(enum.StrEnum):
    """Result of publishing: a new commit was made, or the Space had the generation already."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Published:
    """The outcome of a publish, the commit of the Space with the generation, and its manifest."""

    outcome: PublishOutcome
    commit: str
    """Commit of the Space that has the generation."""
    manifest: Manifest


class PublishingIntent(Protocol):
    """Which generation to publish: that of main or, as a rollback, an earlier one."""

    def is_live(self, state: SpaceState) -> bool:
        """Whether the Space already has this generation."""

    def generation(self, state: SpaceState) -> Generation:
        """Return the generation to publish on a Space in this state.

        Raises NotFastForward if the Space must not be changed.
        """

    def message(self, generation: Generation) -> str:
        """Return the commit message."""


def _live_manifest(built: Generation, state: SpaceState) -> Manifest | None:
    """Return the manifest of the Space if all its files are those of this generation; else None."""
    live = state.manifest
    is_same = live is not None and live.generation == built.manifest.generation
    return live if is_same and not state.differing(built.files | built.editions) else None


@dataclass(frozen=True)
class MainIntent:
    """The intent to publish the board of a commit of main, a descendant of the live commit."""

    built: Generation
    """The generation of main."""
    repository: GitRepository
    """The clone that tells which commit descends from which."""

    def is_live(self, state: SpaceState) -> bool:
        """Whether every byte of the Space is from this generation, and it is not a rollback."""
        manifest = _live_manifest(self.built, state)
        return manifest is not None and manifest.rollback is None

    def generation(self, state: SpaceState) -> Generation:
        """Return the generation to publish. Raises NotFastForward if a newer one is live."""
        if state.manifest is not None:
            require_descendant(state.manifest, self.built.manifest.source_commit, self.repository)
        return self.built

    def message(self, generation: Generation) -> str:
        """Return the commit message, with the generation and its commit."""
        return _commit_message("Board", generation)


def require_descendant(live: Manifest, commit: str, repository: GitRepository) -> None:
    """Raise NotFastForward unless `commit` descends from the commit of the live board."""
    if live.rollback is not None and live.rollback.covers == commit:
        raise NotFastForward(
            f"the board of commit {commit} was rolled back: generation "
            f"{live.generation[:ID_DIGITS_SHOWN]} of commit {live.source_commit} is live",
            "merge a fix and publish the merged commit; or undo the rollback by rolling back to "
            f"generation {live.rollback.former_generation[:ID_DIGITS_SHOWN]}",
        )
    if not repository.is_ancestor(live.newest_commit, commit):
        raise NotFastForward(
            f"the Space has the board of commit {live.newest_commit}, which is not an ancestor of "
            f"{commit}: publishing would undo the board on the Space",
            "publish from the newest main; if main was rewritten, delete manifest.json on the "
            "Space first",
        )


@dataclass(frozen=True)
class BoardChange(SpaceChange):
    """The change of a Space that publishes a board."""

    manifest: Manifest
    """Manifest of the published board."""

    def files_not_as_published(self, after: RepositoryState) -> set[str]:
        """Return the names of the files that differ from the published ones.

        The manifest is also compared as it was read.
        """
        is_read_back = isinstance(after, SpaceState) and after.manifest == self.manifest
        return super().files_not_as_published(after) | (set() if is_read_back else {MANIFEST_FILE})


def push(
    space: Space,
    intent: PublishingIntent,
    *,
    is_new: bool = False,
    clock: Clock = time,
    say: Say = silent,
) -> Published:
    """Publish a generation in one commit, unless the Space already has it. Raises PublishFault.

    `is_new` allows a board with signed statements on a Space that has no board.
    """
    manifest: Manifest

    def plan() -> BoardChange:
        nonlocal manifest
        state = space.state()
        if state.manifest is not None and intent.is_live(state):
            manifest = state.manifest
            return BoardChange(state, {}, (), "", manifest)
        generation = intent.generation(state)
        require_all_statements(space, state, generation, is_new=is_new)
        changed_files = state.differing(generation.published)
        if (changed_bytes := sum(map(len, changed_files.values()))) > PROGRESS_BYTES_MIN:
            say(f"{plural(len(changed_files), 'file')}, {network_text(changed_bytes, 'send')}")
        manifest = generation.manifest
        dropped_names = dropped_files(state, generation)
        message = intent.message(generation)
        return BoardChange(state, generation.published, dropped_names, message, manifest)

    commit, is_new_commit = commit_change(space, plan, clock=clock, say=say)
    outcome = PublishOutcome.PUBLISHED if is_new_commit else PublishOutcome.UNCHANGED
    return Published(outcome, commit, manifest)


def require_all_statements(
    space: Space, state: SpaceState, generation: Generation, *, is_new: bool = False
) -> None:
    """Raise NotFastForward unless the generation has every statement that was ever published.

    All generations in the Space's history are compared, so that resetting the Space hides nothing.
    If the generation has statements, a Space that never had a board is refused unless `is_new`. A
    rollback may lack some of them, if each statement that it has was published before.
    """
    new_statements = (
        statements_in(generation.files[STATEMENTS_PATH])
        if STATEMENTS_PATH in generation.files
        else {}
    )
    earlier_statements = published_statements(space)
    if new_statements and not earlier_statements and state.manifest is None and not is_new:
        count = plural(len(new_statements), "signed statement")
        raise NotFastForward(
            f"{space.resource} has no board, and main has {count}: "
            "this is not the Space of the board, or its history is lost",
            "publish to the Space that has the earlier boards; if no Space has one, pass "
            "--new-space",
        )
    if generation.manifest.rollback is not None:
        earlier_items = {
            item for statements in earlier_statements.values() for item in statements.items()
        }
        earlier_statements = (
            {} if earlier_items >= set(new_statements.items()) else earlier_statements
        )
    for commit, statements in earlier_statements.items():
        if lost := published_losses(statements, new_statements):
            raise NotFastForward(
                f"{space.resource}: its commit {commit[:ID_DIGITS_SHOWN]} has statements that the "
                f"new board lacks: {'; '.join(lost[:LOST_STATEMENTS_MAX])}",
                "restore the signed files on main from its history, then publish",
            )
    _require_extended_log(space, state, generation)


def published_statements(space: Space) -> dict[str, dict[str, str]]:
    """Return the lists of statements in the history of a Space, by commit, the newest first.

    A list that several generations share is read only once, because the messages of their commits
    contain its digest; a commit whose message lacks it is read too. Raises SpaceDiffers for a list
    that cannot be read.
    """
    lists: dict[str, dict[str, str]] = {}
    read_digests = {NO_STATEMENTS}
    for past_commit in space.past_commits():
        match = _STATEMENTS_LINE.search(past_commit.message)
        if match is not None and match[1] in read_digests:
            continue
        raw = space.read_if_exists(STATEMENTS_PATH, past_commit.commit, STATEMENTS_BYTES_MAX)
        if raw is None:
            continue
        read_digests.add(hashlib.sha256(raw).hexdigest())
        try:
            lists[past_commit.commit] = statements_in(raw)
        except ValueError as error:
            raise SpaceDiffers(
                f"{space.resource} at {past_commit.commit}: {STATEMENTS_PATH} cannot be read: "
                f"{error}",
                "find out who made this commit: a newer geneb-ci or another program wrote the file",
            ) from error
    return lists


def _commit_message(action: str, generation: Generation, *lines: str) -> str:
    """Return a commit message: a subject, then generation, commit and digest of statements."""
    board, commit = generation.manifest.generation, generation.manifest.source_commit
    raw = generation.files.get(STATEMENTS_PATH)
    statements = hashlib.sha256(raw).hexdigest() if raw is not None else NO_STATEMENTS
    subject_lines = [f"{action} {board[:ID_DIGITS_SHOWN]} of commit {commit[:ID_DIGITS_SHOWN]}", ""]
    facts = [f"Generation: {board}", f"Source-commit: {commit}"]
    return "\n".join([*subject_lines, *facts, *lines, f"Statements: {statements}"])


def _require_extended_log(space: Space, state: SpaceState, generation: Generation) -> None:
    """Raise NotFastForward unless the old log of audits extends the published one."""
    checkpoint_file = f"{PUBLISHED_LOG_FOLDER}/{CHECKPOINT}"
    is_rollback = generation.manifest.rollback is not None
    if is_rollback or state.manifest is None or checkpoint_file not in state.manifest.files:
        return
    new_log = {
        path.removeprefix(f"{PUBLISHED_LOG_FOLDER}/"): content
        for path, content in generation.files.items()
        if path.startswith(f"{PUBLISHED_LOG_FOLDER}/")
    }
    try:
        check_extends(new_log, space.read(checkpoint_file, state.head, CHECKPOINT_BYTES_MAX))
    except LogBroken as error:
        raise NotFastForward(
            f"{space.resource}: the log of audits does not extend the published one: "
            f"{error.message.removeprefix(f'{LINKS_STEP}: ')}",
            "restore leaderboard/audits/log on main from the Space, then publish",
        ) from error


def dropped_files(state: SpaceState, generation: Generation) -> list[str]:
    """Return the names of published files that no longer belong to the board.

    Editions are kept when a later generation is published, because no manifest lists them.
    """
    published = state.manifest.files if state.manifest else {}
    return sorted(
        name
        for name in published
        if name in state.files and name not in generation.files and name != MANIFEST_FILE
    )


AS_PUBLISHED_FIX = "pass --as-published to use the bytes that the Space had then"
"""The advice in the error that a generation cannot be rebuilt."""

_GENERATION_NAME = re.compile(r"[0-9a-f]{7,64}")
"""Id of a generation, or at least its first seven digits."""


class PastGeneration(NamedTuple):
    """A generation that the Space had, and the commit of the Space that published it."""

    commit: str
    """Commit of the Space."""
    manifest: Manifest


def check_generation_name(name: str) -> None:
    """Raise UsageProblem for a name that no generation can have."""
    if not _GENERATION_NAME.fullmatch(name):
        raise UsageProblem(
            f"{name!r} is not a generation: expected 7 to 64 hex digits",
            "run `geneb-ci publish --verify` to see the live generation; the commits of the Space "
            "name all generations",
        )


def find_generation(space: Space, prefix: str) -> PastGeneration:
    """Return the generation of the Space's history whose id begins with `prefix`.

    Raises UsageProblem if none or several match, and the errors of Space.
    """
    check_generation_name(prefix)
    matches: dict[str, PastGeneration] = {}
    # Commit messages only help to search; the manifest decides.
    for past_commit in space.past_commits():
        if f"Generation: {prefix}" in past_commit.message:
            manifest = space.state(past_commit.commit).manifest
            if manifest is not None and manifest.generation.startswith(prefix):
                matches[manifest.generation] = PastGeneration(past_commit.commit, manifest)
    if not matches:
        raise UsageProblem(
            f"{space.resource} never had a generation {prefix}",
            "look for the generation in the commits of the Space: https://huggingface.co/"
            f"{space.resource}/commits/main",
        )
    if len(matches) > 1:
        raise UsageProblem(f"{prefix} matches {len(matches)} generations", "pass more digits")
    return next(iter(matches.values()))


def require_generation_of_main(manifest: Manifest, covers: str, repository: GitRepository) -> None:
    """Raise HubRefused unless the generation's commit is an ancestor of `covers`."""
    if not repository.is_ancestor(manifest.source_commit, covers):
        raise HubRefused(
            f"generation {manifest.generation[:ID_DIGITS_SHOWN]} was built from commit "
            f"{manifest.source_commit}, which is not an ancestor of {covers}",
            "run `git pull` and then this command; if main was rewritten, revert the unwanted "
            "commits and publish main, as this generation cannot be restored",
        )


def generation_as_published(space: Space, past_generation: PastGeneration) -> Generation:
    """Return a generation with its bytes from the Space's history.

    Raises SpaceDiffers if they do not match the manifest, and the errors of Space.
    """
    files = {}
    for path, file in past_generation.manifest.files.items():
        files[path] = space.read(path, past_generation.commit)
        if hashlib.sha256(files[path]).hexdigest() != file.sha256:
            raise SpaceDiffers(
                f"{space.resource} at {past_generation.commit}: {path} does not match its manifest",
                "omit --as-published, so that the generation is rebuilt",
            )
    return Generation(files, past_generation.manifest.model_copy(update={"rollback": None}))


def require_same_generation(manifest: Manifest, generation: Generation) -> None:
    """Raise HubRefused if a rebuilt generation differs from the published one."""
    if manifest.generation != generation.manifest.generation:
        raise HubRefused(
            f"generation {manifest.generation[:ID_DIGITS_SHOWN]} was built by geneb-ci "
            f"{manifest.tool.version}; geneb-ci {generation.manifest.tool.version} on this machine "
            f"builds other bytes from commit {manifest.source_commit}",
            AS_PUBLISHED_FIX,
        )


@dataclass(frozen=True)
class RollbackIntent:
    """The intent to publish an earlier generation instead of main up to commit `covers`."""

    built: Generation
    """The earlier generation."""
    covers: str
    """The newest commit of main that is rolled back."""
    repository: GitRepository
    """The clone that tells which commit descends from which."""

    def is_live(self, state: SpaceState) -> bool:
        """Whether every byte of the Space is from this generation already."""
        live = _live_manifest(self.built, state)
        return live is not None and (live.rollback is None or live.rollback.covers == self.covers)

    def generation(self, state: SpaceState) -> Generation:
        """Return the earlier generation with the record of the rollback.

        Raises NotFastForward if the Space has a commit that is not an ancestor of `covers`.
        """
        live = state.manifest
        if live is None:
            raise NotFastForward(
                "the Space has no board, so there is nothing to roll back",
                "run `geneb-ci publish`",
            )
        if not self.repository.is_ancestor(live.newest_commit, self.covers):
            raise NotFastForward(
                f"the Space has the board of commit {live.newest_commit}, which is not an ancestor "
                f"of {self.covers}: this clone is outdated",
                "run `git pull`, then roll back",
            )
        if self.covers == self.built.manifest.source_commit:
            return self.built  # the newest board: the rollback ends
        return self.built.with_rollback(
            Rollback(former_generation=live.generation, covers=self.covers)
        )

    def message(self, generation: Generation) -> str:
        """Return the commit message, with the generation and the newest commit rolled back."""
        return _commit_message("Roll back to board", generation, f"Covers: {self.covers}")
