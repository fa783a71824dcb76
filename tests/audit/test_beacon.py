"""The beacon: published rounds verify, anything else does not; which round is due when."""

import hashlib
import importlib
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geneb_ci.audit.canonical import moment_of, seconds_of
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.sampling import beacon
from geneb_ci.audit.sampling.beacon import (
    DELAY_SECONDS,
    QUICKNET,
    randomness_of,
    round_at,
    time_of_round,
    verify_round,
)
from geneb_ci.common.errors import BrokenInstallation, UsageProblem
from tests.audit.examples import ROUNDS, VECTORS

KEYS = {name: VECTORS[name]["public_key"] for name in ("quicknet", "test_key")}
PUBLISHED = [
    (name, beacon_round["round"], beacon_round["signature"])
    for name in KEYS
    for beacon_round in VECTORS[name]["rounds"]
]
# Order of the groups of BLS12-381, and a point of the curve that is not in its group: found by
# counting x up from 0, it has y^2 = x^3 + 4.
OUTSIDE = f"{(1 << 383) + 4:096x}"
FIELD = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624"
    "1eabfffeb153ffffb9feffffffffaaab",
    16,
)
"""Order of the field of coordinates."""
INFINITY = f"{0b11 << 382:096x}"


def test_the_constants_are_those_of_the_chain():
    facts = VECTORS["quicknet"]
    assert QUICKNET._asdict() == {
        "hash": facts["chain_hash"],
        "genesis": facts["genesis_time"],
        "period": facts["period"],
        "public_key": facts["public_key"],
    }


@pytest.mark.parametrize(("name", "number", "signature"), PUBLISHED)
def test_a_published_round_verifies(name, number, signature):
    verify_round(number, signature, KEYS[name])


def test_the_value_is_the_published_randomness():
    (beacon_round,) = [item for item in VECTORS["test_key"]["rounds"] if "randomness" in item]
    assert randomness_of(beacon_round["signature"]).hex() == beacon_round["randomness"]


@pytest.mark.parametrize("number", [1, 122, 124, 123 + 2**32, 2**64 - 1])
def test_another_round_is_refused(number):
    with pytest.raises(StepMismatch) as caught:
        verify_round(number, ROUNDS[123])
    assert caught.value.step == "signature"
    assert (
        caught.value.message
        == f"signature: the signature is not that of round {number} of the beacon"
    )


@pytest.mark.parametrize("number", [-1, 0, 2**64])
def test_what_is_not_a_round_is_refused(number):
    with pytest.raises(StepMismatch) as caught:
        verify_round(number, ROUNDS[123])
    assert caught.value.message == f"round: the beacon has no round {number}"


def test_another_key_is_refused():
    with pytest.raises(StepMismatch, match="not that of round 123 of the beacon"):
        verify_round(123, ROUNDS[123], KEYS["test_key"])


@settings(max_examples=60)
@given(position=st.integers(0, 47), flip=st.integers(1, 255))
@example(position=0, flip=0x20)  # the sign of y: a point of the group, and the negated signature
@example(position=0, flip=0x80)  # the mark of the compressed form
@example(position=0, flip=0x40)  # the mark of infinity
def test_a_signature_with_a_changed_byte_is_refused(position, flip):
    raw = bytearray.fromhex(ROUNDS[123])
    raw[position] ^= flip
    with pytest.raises(StepMismatch) as caught:
        verify_round(123, raw.hex())
    assert caught.value.step == "signature"


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (INFINITY, "the signature is not a point of the group of prime order"),
        (f"{(0b11 << 382) + 1:096x}", "the signature is not a point of the group of prime order"),
        ("00" * 48, "the signature is not a point of the curve"),
        (OUTSIDE, "the signature is not a point of the group of prime order"),
        ("9" + "f" * 95, "the signature is not a point of the curve"),
        (f"{(1 << 383) + FIELD:096x}", "the signature is not a point of the curve"),
        (ROUNDS[123][:-2], "the signature is not a point of the curve"),
        (ROUNDS[123] + "00", "the signature is not a point of the curve"),
        ("zz" * 48, "the signature is not a point of the curve"),
    ],
)
def test_what_is_no_point_of_the_group_is_refused(signature, message):
    with pytest.raises(StepMismatch) as caught:
        verify_round(123, signature)
    assert caught.value.message == f"signature: {message}"


@pytest.mark.parametrize("key", ["c0" + "00" * 95, "00" * 96, "8" + "0" * 190 + "2"])
def test_a_key_that_is_no_point_of_the_group_is_refused(key):
    with pytest.raises(StepMismatch, match="signature: the public key is not a point of the"):
        verify_round(123, ROUNDS[123], key)


def py_ecc(name: str) -> Any:
    """Return a module of another library, py_ecc, in plain Python."""
    limit = sys.getrecursionlimit()
    try:
        return importlib.import_module(f"py_ecc.{name}")
    finally:
        sys.setrecursionlimit(limit)  # py_ecc raises it to 100,000


def oracle(number: int, signature: str) -> bool:
    """Whether a round verifies, by another library."""
    group = py_ecc("optimized_bls12_381")
    points, hashing = py_ecc("bls.g2_primitives"), py_ecc("bls.hash_to_curve")
    try:
        signed = points.pubkey_to_G1(bytes.fromhex(signature))
    except ValueError:
        return False
    if group.is_inf(signed) or not points.subgroup_check(signed):
        return False
    message = hashlib.sha256(number.to_bytes(8, "big")).digest()
    hashed = hashing.hash_to_G1(message, beacon.DOMAIN_SEPARATION_TAG, hashlib.sha256)
    key = points.signature_to_G2(bytes.fromhex(QUICKNET.public_key))
    left = group.pairing(key, group.neg(hashed), final_exponentiate=False)
    right = group.pairing(group.G2, signed, final_exponentiate=False)
    return bool(group.final_exponentiate(left * right) == group.FQ12.one())


def holds(number: int, signature: str) -> bool:
    try:
        verify_round(number, signature)
    except StepMismatch:
        return False
    return True


def small_order() -> str:
    """Return the sum of a point outside the group of prime order and a signature."""
    from py_arkworks_bls12381 import G1Point

    outside = G1Point.from_compressed_bytes_unchecked(bytes.fromhex(OUTSIDE))
    signed = G1Point.from_compressed_bytes(bytes.fromhex(ROUNDS[123]))
    return (signed + outside).to_compressed_bytes().hex()


DECIDED = [
    *ROUNDS.items(),
    (122, ROUNDS[123]),
    (124, ROUNDS[123]),
    (123, f"{int(ROUNDS[123], 16) ^ 1 << 381:096x}"),  # the negated signature
    (123, INFINITY),
    (123, f"{(0b11 << 382) + 1:096x}"),  # infinity with a coordinate
    (123, f"{0b111 << 381:096x}"),  # infinity with a sign
    (123, f"{0b01 << 382:096x}"),  # infinity, not compressed
    (123, OUTSIDE),
    (123, small_order()),
    (123, f"{(1 << 383) + FIELD:096x}"),  # a coordinate that is not below the field's order
    (123, f"{int(ROUNDS[123], 16) + FIELD:096x}"),
    (123, "00" * 48),
    (123, "ff" * 48),
]


@pytest.mark.parametrize(("number", "signature"), DECIDED)
def test_the_published_signature_of_a_round_holds_and_no_other(number, signature):
    assert holds(number, signature) is (ROUNDS.get(number) == signature)


# In the gate, the verdicts themselves: above.
@pytest.mark.nightly
@pytest.mark.parametrize(("number", "signature"), DECIDED)
def test_the_verdict_is_that_of_another_library(number, signature):
    assert holds(number, signature) is oracle(number, signature)


@settings(max_examples=60)
@given(number=st.sampled_from(sorted(ROUNDS)), bits=st.sets(st.integers(0, 383), max_size=2))
def test_a_signature_with_changed_bits_does_not_hold(number, bits):
    changed = int(ROUNDS[number], 16) ^ sum(1 << bit for bit in bits)
    assert holds(number, f"{changed:096x}") is (not bits)


@pytest.mark.nightly  # in the gate, the verdicts themselves: above
@settings(max_examples=8)
@given(number=st.sampled_from(sorted(ROUNDS)), bits=st.sets(st.integers(0, 383), max_size=2))
def test_the_verdict_on_changed_bits_is_that_of_another_library(number, bits):
    changed = int(ROUNDS[number], 16) ^ sum(1 << bit for bit in bits)
    assert holds(number, f"{changed:096x}") is oracle(number, f"{changed:096x}") is (not bits)


@settings(max_examples=8)
@given(st.binary(min_size=48, max_size=48), st.integers(1, 2**64 - 1))
def test_the_round_becomes_the_point_of_another_library(text, number):
    """The hash to the curve, for which a wrong signature says nothing."""
    from py_arkworks_bls12381 import G1Point

    points, hashing = py_ecc("bls.g2_primitives"), py_ecc("bls.hash_to_curve")
    for message in (text, hashlib.sha256(number.to_bytes(8, "big")).digest()):
        ours = G1Point.hash_to_curve(message, beacon.DOMAIN_SEPARATION_TAG).to_compressed_bytes()
        assert ours == points.G1_to_pubkey(
            hashing.hash_to_G1(message, beacon.DOMAIN_SEPARATION_TAG, hashlib.sha256)
        )


@settings(max_examples=500)
@given(st.binary(max_size=60))
@example(b"")
def test_any_bytes_are_refused_without_an_exception_of_the_library(raw):
    assert not holds(123, raw.hex())


def test_a_round_is_verified_in_milliseconds():
    """A hundred records were half a minute with a library in plain Python."""
    begun = time.process_time()
    for number in ROUNDS:
        verify_round.__wrapped__(number, ROUNDS[number])
    assert (time.process_time() - begun) / len(ROUNDS) < 0.05


def test_the_recursion_limit_stays_as_it_was():
    script = (
        "import sys; from geneb_ci.audit.sampling.beacon import verify_round; "
        f"verify_round(123, {ROUNDS[123]!r}); print(sys.getrecursionlimit())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1000\n"


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(beacon, "_CURVE_LIBRARY_NAME", "a_library_that_is_not_here")
    beacon._curve_library.cache_clear()
    try:
        with pytest.raises(BrokenInstallation) as caught:
            verify_round(122, ROUNDS[123])
    finally:
        monkeypatch.undo()
        beacon._curve_library.cache_clear()
    assert caught.value.fix == "pip install 'geneb-ci[records]'"


# A recording of the newest round by a clock that was not ours: at 2026-09-17T15:23:55Z the relays
# had served 32285086. Both their signatures verify above.
@pytest.mark.parametrize(
    ("number", "due"),
    [
        (1, "2023-08-23T15:09:27Z"),  # genesis
        (2, "2023-08-23T15:09:30Z"),
        (32_285_086, "2026-09-17T15:23:42Z"),
    ],
)
def test_when_a_round_is_due(number, due):
    assert moment_of(time_of_round(number)) == due


@pytest.mark.parametrize(
    ("committed_at", "number"),
    [
        ("2023-08-23T15:08:27Z", 1),
        ("2023-08-23T15:08:28Z", 2),
        ("2023-08-23T15:08:30Z", 2),
        ("2023-08-23T15:08:31Z", 3),
        ("2026-09-17T15:22:39Z", 32_285_085),
        ("2026-09-17T15:22:40Z", 32_285_086),
        ("2026-09-17T15:22:42Z", 32_285_086),
        ("2026-09-17T15:22:43Z", 32_285_087),
    ],
)
def test_which_round_decides(committed_at, number):
    assert round_at(seconds_of(committed_at)) == number


@given(st.integers(QUICKNET.genesis - DELAY_SECONDS, 2**40))
def test_the_round_that_decides_is_the_first_one_late_enough(committed_at):
    number = round_at(committed_at)
    assert time_of_round(number) >= committed_at + DELAY_SECONDS
    assert number == 1 or time_of_round(number - 1) < committed_at + DELAY_SECONDS


def test_before_the_beacon_there_was_no_round():
    with pytest.raises(UsageProblem, match="older than the beacon"):
        round_at(QUICKNET.genesis - DELAY_SECONDS - 1)


@given(st.integers(0, 2**35))
def test_moments_are_written_in_one_way(seconds):
    assert seconds_of(moment_of(seconds)) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "2026-11-20", "2026-11-20T08:30:00", "2026-11-20T08:30:00+00:00"),
        *("2026-11-20T8:30:00Z", "2026-02-30T08:30:00Z", "2026-11-20T08:30:00.5Z"),
        *("2026-11-20t08:30:00z", "٢٠٢٦-11-20T08:30:00Z", "2026-11-20T08:30:61Z"),
    ],
)
def test_what_is_not_a_time_is_refused(text):
    with pytest.raises(UsageProblem, match="is not a time"):
        seconds_of(text)
