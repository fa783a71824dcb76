"""Publishes a generation on the Space in one commit: a new one, or an earlier one (rollback)."""

import enum
import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from geneb_ci.audit.record.old_log import (
    CHECKPOINT,
    LINKS,
    NOTE_BYTES_MAX,
    LogBroken,
    check_extends,
)
from geneb_ci.audit.record.published import BYTES_MAX, PATH, lost_since, statements_in
from geneb_ci.common.errors import UsageProblem
from geneb_ci.publish.faults import HubRefused, NotFastForward, SpaceDiffers, UnknownOutcome
from geneb_ci.publish.generation import PUBLISHED_LOG, Generation
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.manifest import NAME, Manifest, Rollback
from geneb_ci.publish.session import Clock, attempt
from geneb_ci.publish.space import Space, SpaceState
from geneb_ci.receipt.cells import network_text
from reference_harness.formats.text import Say, plural, silent

PROGRESS_BYTES = 25_000_000
"""Bytes of an upload whose time is said before: less takes under two seconds at 100 Mbit/s."""
SHORT = 12  # hex digits of a digest in messages
LOST_SHOWN = 10
"""Lost statements that a message names."""
NO_STATEMENTS = "none"
_STATEMENTS = re.compile(rf"^Statements: ([0-9a-f]{{64}}|{NO_STATEMENTS})$", re.MULTILINE)
"""Line of a commit's message: digest of the list of statements that the generation has."""


class PublishOutcome(enum.StrEnum):
    """Result of publishing."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Published:
    """Outcome, commit of the Space, and its manifest."""

    outcome: PublishOutcome
    commit: str
    manifest: Manifest


class Intent(Protocol):
    """The generation to publish: a new one or, as a rollback, an earlier one."""

    def is_live(self, state: SpaceState) -> bool:
        """Whether the Space already has this generation."""

    def generation(self, state: SpaceState) -> Generation:
        """Return the generation to publish. Raises NotFastForward if the state must not change."""

    def message(self, generation: Generation) -> str:
        """Return the commit message."""


def _live(built: Generation, state: SpaceState) -> Manifest | None:
    """Return the manifest of the Space if it has this generation, in every byte."""
    live = state.manifest
    is_same = live is not None and live.generation == built.manifest.generation
    return live if is_same and state.holds(built.files | built.editions) else None


@dataclass(frozen=True)
class PublishIntent:
    """The generation of a commit of main, which must descend from the live commit."""

    built: Generation
    repository: GitRepository

    def is_live(self, state: SpaceState) -> bool:
        """Whether the Space has this generation, in every byte and not as a rollback."""
        live = _live(self.built, state)
        return live is not None and live.rollback is None

    def generation(self, state: SpaceState) -> Generation:
        """Return the generation to publish. Raises NotFastForward if a newer one is live."""
        if state.manifest is not None:
            must_follow(state.manifest, self.built.manifest.source_commit, self.repository)
        return self.built

    def message(self, generation: Generation) -> str:
        """Return the commit message, with the generation and its commit."""
        manifest = generation.manifest
        return (
            f"Board {manifest.generation[:SHORT]} of commit {manifest.source_commit[:SHORT]}\n\n"
            f"Generation: {manifest.generation}\nSource-commit: {manifest.source_commit}\n"
            f"{_statements_line(generation)}"
        )


def must_follow(live: Manifest, commit: str, repository: GitRepository) -> None:
    """Raise NotFastForward unless commit `ours` descends from the live commit."""
    if live.rollback is not None and live.rollback.covers == commit:
        raise NotFastForward(
            f"the board of commit {commit} was rolled back: generation "
            f"{live.generation[:SHORT]} of commit {live.source_commit} is live",
            "merge a fix and publish that; or undo the rollback by rolling back to generation "
            f"{live.rollback.former_generation[:SHORT]}",
        )
    if not repository.is_ancestor(live.newest_commit, commit):
        raise NotFastForward(
            f"the Space has commit {live.newest_commit}, which is not an ancestor of {commit}: "
            "publishing would undo it",
            "publish from the newest main; if main was rewritten, delete manifest.json on the "
            "Space first",
        )


def push(
    space: Space,
    intent: Intent,
    *,
    is_new: bool = False,
    clock: Clock = time,
    say: Say = silent,
) -> Published:
    """Publish in one commit, unless the Space already has it. Raises PublishFault.

    `is_new` allows a board whose statements were signed before on a Space that has no board.
    """
    perhaps = False  # whether an earlier try may have made the commit

    def once() -> Published:
        nonlocal perhaps
        # 1. Read the state; this also shows whether a try without an answer succeeded.
        state = space.state()
        if state.manifest is not None and intent.is_live(state):
            outcome = PublishOutcome.PUBLISHED if perhaps else PublishOutcome.UNCHANGED
            return Published(outcome, state.head, state.manifest)
        # 2. Check that it may be replaced.
        generation = intent.generation(state)
        must_keep_statements(space, state, generation, is_new=is_new)
        dropped = dropped_files(state, generation)
        # 3. One commit on this head: changed files, and deletion of files published earlier.
        changed = differing_files(state, generation.published)
        if (size := sum(map(len, changed.values()))) > PROGRESS_BYTES:
            say(f"{plural(len(changed), 'file')}, {network_text(size, 'send')}")
        try:
            commit = space.commit(state.head, changed, dropped, intent.message(generation))
        except UnknownOutcome:
            perhaps = True
            raise
        perhaps = True
        # 4. Read back and compare.
        after = space.state(commit)
        if wrong := _wrong(after, generation, dropped):
            raise SpaceDiffers(
                f"{space.resource} at {commit} differs from the upload: {', '.join(wrong)}",
                "check for a .gitignore on the Space and for other writers, then publish again",
            )
        return Published(PublishOutcome.PUBLISHED, commit, generation.manifest)

    return attempt(once, clock=clock, say=say)


def must_keep_statements(
    space: Space, state: SpaceState, generation: Generation, *, is_new: bool = False
) -> None:
    """Raise NotFastForward unless every statement that was ever published is still there.

    All generations of the Space's history are compared, so that a Space that was taken back hides
    nothing. A Space that never had a board is refused where statements were signed before, unless
    `is_new` says that it may be one. A rollback may have fewer statements, and no other ones.
    """
    new_statements = statements_in(generation.files[PATH]) if PATH in generation.files else {}
    past = published_statements(space)
    if new_statements and not past and state.manifest is None and not is_new:
        count = plural(len(new_statements), "signed statement")
        raise NotFastForward(
            f"{space.resource} has no board, and main has {count}: "
            "it is not the Space of this board, or its history is lost",
            "publish to the Space that has the earlier boards; pass --new-space if there is none",
        )
    if generation.manifest.rollback is not None:
        ever = {item for statements in past.values() for item in statements.items()}
        past = {} if ever >= set(new_statements.items()) else past
    for commit, statements in past.items():
        if lost := lost_since(statements, new_statements):
            raise NotFastForward(
                f"{space.resource}: the board of its commit {commit[:SHORT]} has what this one "
                f"lacks: {'; '.join(loss.text for loss in lost[:LOST_SHOWN])}",
                "publish from a main that has every signed file; restore them from its history",
            )
    _must_keep_log(space, state, generation)


def published_statements(space: Space) -> dict[str, dict[str, str]]:
    """Return the lists of statements in the history of a Space, by commit, the newest first.

    A list that several generations have is read once, by the line of their messages that names it;
    where a message has no such line, its commit is read. Raises Unverified for a list that cannot
    be read.
    """
    lists: dict[str, dict[str, str]] = {}
    statements = {NO_STATEMENTS}
    for past in space.past():
        match = _STATEMENTS.search(past.message)
        if match is not None and match[1] in statements:
            continue
        raw = space.read_if_there(PATH, past.commit, BYTES_MAX)
        if raw is None:
            continue
        statements.add(hashlib.sha256(raw).hexdigest())
        try:
            lists[past.commit] = statements_in(raw)
        except ValueError as error:
            raise SpaceDiffers(
                f"{space.resource} at {past.commit}: {PATH} cannot be read: {error}",
                "a newer geneb-ci or another program wrote it: look at who made that commit",
            ) from error
    return lists


def _statements_line(generation: Generation) -> str:
    """Return the line of a message by which a list of statements is found."""
    raw = generation.files.get(PATH)
    return f"Statements: {hashlib.sha256(raw).hexdigest() if raw is not None else NO_STATEMENTS}"


def _must_keep_log(space: Space, state: SpaceState, generation: Generation) -> None:
    """Raise NotFastForward unless an old log begins with the published one."""
    name = f"{PUBLISHED_LOG}/{CHECKPOINT}"
    is_rollback = generation.manifest.rollback is not None
    if is_rollback or state.manifest is None or name not in state.manifest.files:
        return
    own_log = {
        path.removeprefix(f"{PUBLISHED_LOG}/"): content
        for path, content in generation.files.items()
        if path.startswith(f"{PUBLISHED_LOG}/")
    }
    try:
        check_extends(own_log, space.read(name, state.head, NOTE_BYTES_MAX))
    except LogBroken as error:
        raise NotFastForward(
            f"{space.resource}: the log of audits would not follow the published one: "
            f"{error.message.removeprefix(f'{LINKS}: ')}",
            "publish from a main that has leaderboard/audits/log as it was; restore it from the "
            "Space",
        ) from error


def _wrong(after: SpaceState, generation: Generation, deleted: list[str]) -> list[str]:
    """Return the files that differ from the upload, by the Hub's digests and the manifest."""
    wrong = {*differing_files(after, generation.published), *after.files.keys() & set(deleted)}
    if after.manifest != generation.manifest:
        wrong.add(NAME)
    return sorted(wrong)


def differing_files(state: SpaceState, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that are missing or different in a state."""
    return {name: content for name, content in files.items() if not state.holds({name: content})}


def dropped_files(state: SpaceState, generation: Generation) -> list[str]:
    """Return the files that were published earlier and no longer belong to the board.

    Editions are in no manifest, and so stay when a later generation is published.
    """
    published = state.manifest.files if state.manifest else {}
    return sorted(
        n for n in published if n in state.files and n not in generation.files and n != NAME
    )


AS_PUBLISHED = "pass --as-published to use the bytes that the Space had then"
"""Advice if a generation cannot be rebuilt."""

_NAME = re.compile(r"[0-9a-f]{7,64}")


class PastGeneration(NamedTuple):
    """A generation in the Space's history."""

    commit: str
    manifest: Manifest


def check_generation_name(name: str) -> None:
    """Raise UsageProblem for a name that no generation can have."""
    if not _NAME.fullmatch(name):
        raise UsageProblem(
            f"{name!r} is not a generation: expected 7 to 64 hex digits",
            "`geneb-ci publish --verify` shows the live one, the Space's commits show all",
        )


def find_generation(space: Space, name: str) -> PastGeneration:
    """Return a generation of the Space's history, by the first digits of its id.

    Raises UsageProblem if none or several match, and the errors of Space.
    """
    check_generation_name(name)
    matches: dict[str, PastGeneration] = {}
    # Commit messages only help to search; the manifest decides.
    for past in space.past():
        if f"Generation: {name}" in past.message:
            manifest = space.state(past.commit).manifest
            if manifest is not None and manifest.generation.startswith(name):
                matches[manifest.generation] = PastGeneration(past.commit, manifest)
    if not matches:
        raise UsageProblem(
            f"{space.resource} never had a generation {name}",
            "its commits show the generations: https://huggingface.co/"
            f"{space.resource}/commits/main",
        )
    if len(matches) > 1:
        raise UsageProblem(f"{name} matches {len(matches)} generations", "pass more digits")
    return next(iter(matches.values()))


def must_be_of_main(manifest: Manifest, covers: str, repository: GitRepository) -> None:
    """Raise HubRefused unless the generation's commit is an ancestor of `covers`."""
    if not repository.is_ancestor(manifest.source_commit, covers):
        raise HubRefused(
            f"generation {manifest.generation[:SHORT]} is of commit "
            f"{manifest.source_commit}, which is not an ancestor of {covers}",
            "run `git pull`; if main was rewritten, publish a commit that reverts it instead",
        )


def as_published(space: Space, past: PastGeneration) -> Generation:
    """Return a generation with its bytes from the Space's history.

    Raises Unverified if they do not match the manifest, and the errors of Space.
    """
    files = {}
    for name, file in past.manifest.files.items():
        files[name] = space.read(name, past.commit)
        if hashlib.sha256(files[name]).hexdigest() != file.sha256:
            raise SpaceDiffers(
                f"{space.resource} at {past.commit}: {name} does not match its manifest",
                "omit --as-published, so that it is rebuilt",
            )
    return Generation(files, past.manifest.model_copy(update={"rollback": None}))


def require_same_generation(manifest: Manifest, generation: Generation) -> None:
    """Raise HubRefused if a rebuilt generation differs from the published one."""
    if manifest.generation != generation.manifest.generation:
        raise HubRefused(
            f"generation {manifest.generation[:SHORT]} was built by geneb-ci "
            f"{manifest.tool.version}; this version, {generation.manifest.tool.version}, builds "
            f"other bytes from commit {manifest.source_commit}",
            AS_PUBLISHED,
        )


@dataclass(frozen=True)
class RollbackIntent:
    """An earlier generation, which replaces main up to commit `covers`."""

    built: Generation
    covers: str
    repository: GitRepository

    def is_live(self, state: SpaceState) -> bool:
        """Whether the Space already has this generation, in every byte."""
        live = _live(self.built, state)
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
                f"the Space has commit {live.newest_commit}, which is not an ancestor of "
                f"{self.covers}: this clone is outdated",
                "run `git pull`, then roll back",
            )
        if self.covers == self.built.manifest.source_commit:
            return self.built  # the newest board: the rollback ends
        return self.built.rolled_back(
            Rollback(former_generation=live.generation, covers=self.covers)
        )

    def message(self, generation: Generation) -> str:
        """Return the commit message, with the generation and the commits rolled back."""
        manifest = generation.manifest
        return (
            f"Roll back to board {manifest.generation[:SHORT]} of commit "
            f"{manifest.source_commit[:SHORT]}"
            f"\n\nGeneration: {manifest.generation}\nSource-commit: {manifest.source_commit}\n"
            f"Covers: {self.covers}\n{_statements_line(generation)}"
        )
