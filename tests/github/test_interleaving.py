"""Orders of pushes, merges, policy changes and sweeps: what may be assumed of each way to merge.

Without a queue, a merge may rest on a verdict about an earlier main until the run that the last
merge started has ended. DIRECT assumes that it has: then no merge rests on a stale verdict. BURST
assumes nothing of the kind, and no change of policy: then rows still do not collide. QUEUE assumes
nothing. That main is free of errors of rules is asserted, not that the whole board is built.
More open pull requests than here: tests/github/test_starvation.py.

GENEB_INTERLEAVINGS is how many orders are tried; 1,000 take about a quarter of an hour.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from geneb_ci.github.sides import RIVALS_MAX
from tests.github.conftest import PEERS, REGULAR, encoded, sound
from tests.github.history import Files
from tests.github.test_motion import corrected
from tests.github.world import World
from tests.small import small

PULLS = 20
# In these ways a merge may come about.
DIRECT = "after every change of main, the run that the push starts comes before the next merge"
QUEUE = "by a merge queue, which checks each group"
BURST = "one merge right after the other, before any run: rows may collide only with each other"
STEMS = ("copycat", "twin", "zebra", "mouse")


class Interleaving(RuleBasedStateMachine):
    """A board, up to 20 pull requests, and people who do what they want."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="geneb-ci-interleaving-"))
        self.world = World(self.place / "board")
        self.way = DIRECT
        self.made = 0
        self.quiet = 0
        """Sweeps since anything else has happened."""

    @initialize(way=st.sampled_from([DIRECT, QUEUE, BURST]))
    def choose(self, way: str) -> None:
        self.way = way

    def teardown(self) -> None:
        for _ in range(2):
            self.swept()
        self.all_that_can_be_judged_are()
        assert self.world.errors_of_main() == []
        shutil.rmtree(self.place)

    def moved(self) -> None:
        """Main has changed: on GitHub, that starts a run."""
        self.quiet = 0
        if self.way == DIRECT:
            self.world.sweep(events=True)

    def name(self, stem: str, form: int) -> str:
        """Return a name; some of them collide."""
        self.made += 1
        return (stem, stem.capitalize(), stem.upper(), f"{stem}-{self.made}")[form]

    @precondition(lambda self: len(self.world.server.pulls) < PULLS)
    @rule(
        stem=st.sampled_from(STEMS),
        form=st.integers(0, 3),
        of=st.sampled_from(["", *STEMS, "alpha"]),
        locked=st.sampled_from([False, False, False, True]),
        hidden=st.sampled_from([False, False, False, True]),
    )
    def opens(self, stem: str, form: int, of: str, locked: bool, hidden: bool) -> None:
        name = self.name(stem, form)
        files = self.submission(name, of or name)
        number = self.world.open(files, locked=locked)
        if hidden:
            self.world.hide(number)
        self.quiet = 0

    @staticmethod
    def submission(name: str, scores_of: str) -> Files:
        document: dict[str, Any] = small(name) | {"results": small(scores_of)["results"]}
        return sound(name) | {f"submissions/{name}.json": (REGULAR, encoded(document))}

    @precondition(lambda self: len(self.world.server.pulls) <= PULLS - RIVALS_MAX)
    @rule(of=st.sampled_from(STEMS))
    def copies(self, of: str) -> None:
        """Open as many copies of one row as a verdict names."""
        for _ in range(RIVALS_MAX):
            name = self.name("copy", 3)
            self.world.open(self.submission(name, of))
        self.quiet = 0

    @precondition(lambda self: len(self.world.server.pulls) < PULLS)
    @rule(peer=st.sampled_from(PEERS[:2]), score=st.integers(50, 90))
    def corrects(self, peer: str, score: int) -> None:
        self.world.open(corrected(peer, score / 100))
        self.quiet = 0

    @precondition(lambda self: self.world.open_numbers())
    @rule(data=st.data(), stem=st.sampled_from(STEMS), form=st.integers(0, 3), bad=st.booleans())
    def pushes(self, data: Any, stem: str, form: int, bad: bool) -> None:
        """Force-push: another model, and sometimes an impossible score."""
        number = data.draw(st.sampled_from(self.world.open_numbers()))
        name = self.name(stem, form)
        files = self.submission(name, name)
        if bad:
            document = small(name)
            document["results"]["full"]["promoter_tata"]["MCC"] = 1.5
            files[f"submissions/{name}.json"] = (REGULAR, encoded(document))
        self.world.push(number, files)
        self.world.unreadable.discard(number)
        self.quiet = 0

    @precondition(lambda self: self.world.open_numbers())
    @rule(data=st.data(), locked=st.booleans())
    def locks(self, data: Any, locked: bool) -> None:
        number = data.draw(st.sampled_from(self.world.open_numbers()))
        self.world.server.pulls[number]["locked"] = locked
        self.quiet = 0

    @precondition(lambda self: self.world.open_numbers())
    @rule(data=st.data())
    def closes(self, data: Any) -> None:
        number = data.draw(st.sampled_from(self.world.open_numbers()))
        self.world.server.pulls[number]["state"] = "closed"
        self.quiet = 0

    @precondition(lambda self: self.way != BURST)
    @rule(number=st.integers(0, 9))
    def changes_policy(self, number: int) -> None:
        policy = encoded({"files": {f"file-{number}": "0" * 64}})
        self.world.change_main({"leaderboard/policy/official.json": (REGULAR, policy)})
        self.moved()

    @rule(times=st.integers(1, 5))
    def sweeps(self, times: int) -> None:
        for _ in range(times):
            self.swept()

    def swept(self) -> None:
        self.world.sweep()
        self.quiet += 1

    @precondition(lambda self: self.world.open_numbers())
    @rule(data=st.data())
    def merges(self, data: Any) -> None:
        """Try to merge all of some pull requests, one right after the other."""
        numbers = self.world.open_numbers()
        chosen = data.draw(st.lists(st.sampled_from(numbers), unique=True, min_size=1))
        for number in chosen:
            if self.way == QUEUE:
                done = self.world.merge_by_queue(number)
            else:
                stale = self.way == DIRECT and self.world.is_stale(number)
                done = self.world.merge(number)
                assert not (done and stale), f"{number} was merged on a verdict that is stale"
            if done:
                self.moved()
                assert self.world.errors_of_main() == [], f"{number} froze the publication"

    @invariant()
    def all_that_can_be_judged_are(self) -> None:
        """After two sweeps each open pull request has its verdict on its head and on main."""
        if self.quiet < 2:
            return
        for number in self.world.open_numbers():
            pull = self.world.server.pulls[number]
            if pull["locked"] or number in self.world.unreadable:
                assert self.world.state(number) != "success" or not self.world.is_stale(number)
            elif self.waits(number):
                continue
            else:
                assert not self.world.is_stale(number), number
                assert self.world.state(number) in {"success", "failure", "pending", "error"}

    def waits(self, number: int) -> bool:
        """Whether a pull request, unlocked since, still waits after an attempt while locked."""
        body = "".join(issue["body"] for issue in self.world.server.issues.values())
        return f"| #{number} |" in body


EXAMPLES = int(os.environ.get("GENEB_INTERLEAVINGS", "6"))


def test_in_any_order_nothing_stale_passes_and_nothing_freezes():
    run_state_machine_as_test(
        Interleaving,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=25,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink one takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
