"""A publisher in a process of its own: one generation after another, each when it is told to.

python -m tests.publish.racer ENDPOINT FILE REQUESTS: FILE is a pickle of the repository's root and
of the generations by name. Each line of REQUESTS names a Space and a generation; the answer is a
line of standard error with what became of it, after `ANSWER`.
"""

import pickle
import sys
from pathlib import Path

from geneb_ci.publish.faults import NotFastForward
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.push import MainIntent, push
from geneb_ci.publish.space import Space
from tests.publish.hub import WRITER
from tests.publish.settled import Patience

ANSWER = "outcome: "


def main(endpoint: str, file: str, requests: str) -> None:
    root, generations = pickle.loads(Path(file).read_bytes())  # noqa: S301 (the test wrote it)
    with Path(requests).open(encoding="utf-8") as lines:
        for line in lines:
            name, which = line.split()
            space = Space(name, token=WRITER, endpoint=endpoint)
            intent = MainIntent(generations[which], GitRepository(root))
            try:
                outcome = str(push(space, intent, clock=Patience()).outcome)
            except NotFastForward:
                outcome = "overtaken"
            sys.stderr.write(f"{ANSWER}{outcome}\n")
            sys.stderr.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
