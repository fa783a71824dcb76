"""What one job of the workflow publish hands to the next."""

import hashlib
import json

import pytest

from tools.board_outputs import outputs


def test_two_digests_a_line_each():
    raw = json.dumps({"generation": "ab" * 32}).encode()
    digest = hashlib.sha256(raw).hexdigest()
    assert outputs(raw) == f"generation={'ab' * 32}\nmanifest={digest}\n"


@pytest.mark.parametrize("generation", ["", "x\nmanifest=0", "AB" * 32, "ab" * 32 + "\n", None, 1])
def test_row_20_a_generation_that_is_no_digest_steers_no_runner(generation):
    with pytest.raises(ValueError, match="is no SHA-256"):
        outputs(json.dumps({"generation": generation}).encode())
