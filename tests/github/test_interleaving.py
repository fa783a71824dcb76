"""Orders of pushes, merges, policy changes and sweeps: what may be assumed of each way to merge.

Without a queue, a merge may rest on a verdict about an earlier main until the run that the last
merge started has ended. DIRECT assumes that it has: then no merge rests on a stale verdict. BURST
assumes nothing of the kind, and no other change of main: then rows still do not collide. QUEUE
assumes nothing. That main is free of errors of rules is asserted, not that the whole board is
built. More open pull requests than here: tests/github/test_starvation.py.

GENEB_INTERLEAVINGS is how many orders are tried; `--hypothesis-show-statistics` counts what
happened in them.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from geneb_ci.github.fingerprints import RIVALS_MAX
from tests.examples import examples
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
MAINTAINER, FORMER, STRANGER = "maintainer", "former", "somebody"


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
        self.told: dict[int, str] = {}
        """Number to the last command of the maintainer."""
        self.disputed: set[int] = set()
        """Those of which a sweep has read that they are disputed."""
        self.undo: list[tuple[Files, Files]] = []
        """Files of main before and after each merge."""
        self.world.server.rights |= {MAINTAINER: "write", FORMER: "write"}

    @initialize(
        way=st.sampled_from([DIRECT, QUEUE, BURST]),
        crowd=st.lists(
            st.tuples(st.sampled_from(STEMS), st.sampled_from([0, 1, 2, 3, 3, 3, 3])),
            min_size=3,
            max_size=14,
        ),
    )
    def choose(self, way: str, crowd: list[tuple[str, int]]) -> None:
        self.way = way
        for stem, form in crowd:
            name = self.name(stem, form)
            self.world.open(self.submission(name, name))
        self.swept()

    def teardown(self) -> None:
        for _ in range(2):
            self.swept()
        self.all_that_can_be_judged_are()
        assert self.world.errors_of_main() == []
        event(f"pull requests: {len(self.world.server.pulls) // 5 * 5} or more")
        shutil.rmtree(self.place)

    def one_of(self, data: Any, *, state: str = "open") -> int:
        """Draw a pull request in a state."""
        pulls = self.world.server.pulls.items()
        numbers = [n for n, pull in pulls if pull["state"] == state and not pull.get("merged_at")]
        return int(data.draw(st.sampled_from(numbers)))

    def is_closed_any(self) -> bool:
        pulls = self.world.server.pulls.values()
        return any(pull["state"] == "closed" and not pull.get("merged_at") for pull in pulls)

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
        self.world.server.pulls[self.one_of(data)]["state"] = "closed"
        self.quiet = 0

    @precondition(lambda self: self.is_closed_any())
    @rule(data=st.data())
    def reopens(self, data: Any) -> None:
        number = self.one_of(data, state="closed")
        self.world.server.pulls[number]["state"] = "open"
        event("reopened")
        self.quiet = 0

    @precondition(lambda self: self.world.open_numbers())
    @rule(data=st.data(), ref=st.sampled_from(["main", "main", "dev"]))
    def changes_the_base(self, data: Any, ref: str) -> None:
        base = self.world.server.pulls[self.one_of(data)]["base"]
        event(f"from {base['ref']} to {ref}")
        base["ref"] = ref
        self.quiet = 0

    @precondition(lambda self: self.world.open_numbers())
    @rule(data=st.data())
    def deletes_its_fork(self, data: Any) -> None:
        self.world.server.pulls[self.one_of(data)]["head"]["repo"] = None

    @precondition(lambda self: self.world.open_numbers())
    @rule(data=st.data(), draft=st.booleans())
    def makes_a_draft(self, data: Any, draft: bool) -> None:
        self.world.server.pulls[self.one_of(data)]["draft"] = draft

    @precondition(lambda self: self.world.open_numbers() and len(self.world.server.pulls) < PULLS)
    @rule(data=st.data(), stem=st.sampled_from(STEMS), more=st.booleans())
    def builds_on_another(self, data: Any, stem: str, more: bool) -> None:
        """Open the head of another pull request again, or a model on top of it."""
        head = self.world.server.pulls[self.one_of(data)]["head"]["sha"]
        if more:
            name = self.name(stem, 3)
            files = self.world.files(head) | self.submission(name, name)
            head = self.world.server.commit(files, head)
        self.world.server.open_pull(head, self.world.server.main_sha())
        event("stacked" if more else "the same head")
        self.quiet = 0

    @precondition(lambda self: self.world.open_numbers())
    @rule(
        data=st.data(),
        login=st.sampled_from([MAINTAINER, MAINTAINER, FORMER, STRANGER]),
        body=st.sampled_from(["/dispute fake \U0001f41b", "/recheck", "/audit", "Thank you."]),
    )
    def comments(self, data: Any, login: str, body: str) -> None:
        number = self.one_of(data)
        self.world.say(number, login, body)
        command = body.partition(" ")[0]
        if login == MAINTAINER and command in {"/dispute", "/recheck"}:
            self.told[number] = command
            event(f"command {command}")
        elif login == FORMER and command == "/recheck":
            self.told.pop(number, None)  # it ends a dispute, if a sweep reads it while they may
        self.quiet = 0

    @rule(right=st.sampled_from(["write", "read"]))
    def rights_change(self, right: str) -> None:
        self.world.server.rights[FORMER] = right

    @precondition(lambda self: self.way != BURST)
    @rule(number=st.integers(0, 9))
    def changes_policy(self, number: int) -> None:
        policy = encoded({"files": {f"file-{number}": "0" * 64}})
        self.world.change_main({"leaderboard/policy/official.json": (REGULAR, policy)})
        self.moved()

    @precondition(lambda self: self.way != BURST)
    @rule(data=st.data(), stem=st.sampled_from(STEMS))
    def renames_a_row(self, data: Any, stem: str) -> None:
        """Maintainers rename a published row."""
        files = self.world.files(self.world.server.main_sha())
        names = sorted(
            Path(path).stem for path in files if path.count("/") == 1 and ".json" in path
        )
        rows = [name for name in names if f"submissions/{name}.json" in files]
        gone, name = data.draw(st.sampled_from(rows)), self.name(stem, 3)
        files_by_path = {path: file for path, file in files.items() if Path(path).stem != gone}
        self.world.restore(files_by_path | self.submission(name, name))
        event("row renamed")
        self.moved()

    @precondition(lambda self: self.way != BURST and self.undo)
    @rule()
    def reverts(self) -> None:
        """Take the last merge back."""
        before, after = self.undo.pop()
        now = self.world.files(self.world.server.main_sha())
        changed = {
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        }
        if any(now.get(path) != after.get(path) for path in changed):
            return  # a conflict
        rest = {path: member for path, member in now.items() if path not in changed}
        self.world.restore(rest | {path: before[path] for path in changed if path in before})
        event("merge reverted")
        self.moved()

    @rule(times=st.integers(1, 5))
    def sweeps(self, times: int) -> None:
        for _ in range(times):
            self.swept()

    def swept(self) -> None:
        self.world.sweep()
        self.quiet += 1
        self.disputed = {n for n, command in self.told.items() if command == "/dispute"}
        for number in self.disputed & set(self.world.judged_numbers()):
            assert self.world.state(number) != "success", f"{number} is disputed and passes"

    @rule(data=st.data())
    def merges(self, data: Any) -> None:
        self.merge_some(data)

    def merge_some(self, data: Any) -> None:
        """Try to merge all of some pull requests, one right after the other."""
        numbers = self.world.open_numbers()
        if not numbers:
            return
        passing = [number for number in numbers if self.world.is_mergeable(number)]
        some = st.sampled_from(data.draw(st.sampled_from([numbers, passing or numbers])))
        chosen = data.draw(st.lists(some, unique=True, min_size=1))
        rest = list(chosen)
        while rest:
            number, *others = rest
            before = self.world.files(self.world.server.main_sha())
            if self.way == QUEUE and others and data.draw(st.booleans()):
                done = any(self.world.merge_two_by_queue(number, others[0]))
                others = others[1:]
                event(f"two by the queue: {done}")
            elif self.way == QUEUE:
                done = self.world.merge_by_queue(number)
            else:
                stale = self.way == DIRECT and self.world.is_stale(number)
                done = self.world.merge(number)
                assert not (done and stale), f"{number} was merged on a verdict that is stale"
            rest = others
            if done:
                event("merged")
                self.undo.append((before, self.world.files(self.world.server.main_sha())))
                self.moved()
                assert self.world.errors_of_main() == [], f"{number} froze the publication"

    # A rule is drawn as often as another, and what matters is a merge.
    @rule(data=st.data())
    def merges_again(self, data):
        """Merge as before."""
        self.merge_some(data)

    @rule()
    def sweeps_again(self):
        """Sweep as before."""
        self.swept()

    @invariant()
    def all_that_can_be_judged_are(self) -> None:
        """After two sweeps each open pull request has its verdict on its head and on main."""
        if self.quiet < 2:
            return
        for number in self.world.judged_numbers():
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


EXAMPLES = int(os.environ.get("GENEB_INTERLEAVINGS", "0")) or examples(14)


def test_in_any_order_nothing_stale_passes_and_nothing_freezes():
    run_state_machine_as_test(
        Interleaving,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink one takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
