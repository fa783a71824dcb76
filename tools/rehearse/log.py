"""What the chapter of the log merges: a policy that names a log, and a signed commitment."""

import json
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization

from geneb_ci.audit.record.events import signed_event
from tests.audit.examples import ROUNDS
from tests.audit.log_place import LOG_KEY, ORIGIN, VKEY
from tests.audit.recorded import FIRST, commitment, entry, key, submission_bytes

if TYPE_CHECKING:
    from tools.rehearse.world import World

BRANCH = "audit-log"
_SIGNED = signed_event(commitment(submission_bytes()), key())
COMMITMENT = f"leaderboard/audits/{_SIGNED.path}"
FILES = [
    f"leaderboard/audits/log/{name}"
    for name in ("checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1")
]
"""What the log of one entry consists of."""


def merged(world: "World") -> dict[str, bytes]:
    """Give the environment its secret and the machine a round; return the files to be merged."""
    pem = LOG_KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    world.secrets[BRANCH] = {"GENEB_LOG_KEY": pem.decode()}
    beacon = world.folder / "round.json"
    beacon.write_text(json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]}), encoding="utf-8")
    world.given["GENEB_BEACON_FILE"] = str(beacon)
    policy = {"keys": [entry()], "log": {"origin": ORIGIN, "keys": [VKEY]}}
    return {
        "leaderboard/policy/keys.json": json.dumps(policy).encode(),
        COMMITMENT: _SIGNED.content,
    }
