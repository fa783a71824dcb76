"""Input 58: what depends on place or batch, or knows the answers, is given away by its decoys."""

import dataclasses
import json

import pytest

from geneb_ci.audit.rerun.decoys import judge_decoys, with_decoys
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.limits import Limits
from geneb_ci.sandbox.run import run_in_sandbox
from reference_harness import mini
from tests.sandbox.conftest import hostile

DATA = mini.load("mini_promoter")
SEQUENCES = DATA.test.sequences
KNOWN = dict(zip(SEQUENCES, DATA.test.labels.tolist(), strict=True))
LIMITS = Limits(seconds=20, memory_mib=1024, tmp_mib=16)


@pytest.mark.parametrize(
    ("name", "order_dependent", "memorised"),
    [
        ("ByPlace", True, False),
        ("ByBatch", True, False),
        ("LooksUp", False, True),
        ("LooksUpHalf", False, True),
        ("LooksUpRoughly", False, True),
    ],
)
def test_a_cheat_is_given_away(bubblewrap_sandbox: Sandbox, name, order_dependent, memorised):
    spec = hostile("cheats", name, known=json.dumps(KNOWN))
    decoyed = with_decoys(SEQUENCES, b"7" * 32)
    values = run_in_sandbox(decoyed.sequences, spec, bubblewrap_sandbox, LIMITS).values
    again = dataclasses.replace(spec, batching="file")
    apart = run_in_sandbox(decoyed.second_run, again, bubblewrap_sandbox, LIMITS).values
    judgement = judge_decoys(decoyed, values, "float32", apart)
    assert (judgement.order_dependent, judgement.memorised) == (order_dependent, memorised), (
        judgement.detail
    )
