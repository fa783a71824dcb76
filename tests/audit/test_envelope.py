"""Envelopes: DSSE's own example, one sequence of bytes for each, and no byte of it is free."""

import base64
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import (
    PAYLOAD_TYPE,
    is_signed_by,
    parse_envelope,
    pre_authentication_encoding,
    sign_payload,
)
from geneb_ci.audit.record.keys import TrustedKey, signer_of
from tests.audit.recorded import entry, key
from tests.each import each

PAYLOAD = json.dumps({"a": ["statement", 1, 0.5, None]}).encode()
SEALED = sign_payload(PAYLOAD, key())
TRUSTED = {entry()["keyid"]: TrustedKey.model_validate(entry())}


def refusal(raw: bytes) -> StepMismatch:
    with pytest.raises(StepMismatch) as caught:
        signer_of(parse_envelope(raw), TRUSTED)
    return caught.value


def rewritten(**changes: object) -> bytes:
    return json.dumps(json.loads(SEALED) | changes, separators=(",", ":")).encode() + b"\n"


def test_the_signed_bytes_are_those_of_the_specification():
    # The example of DSSE's protocol.md.
    assert pre_authentication_encoding("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_seal_is_the_same_each_time_and_gives_the_payload_back():
    assert sign_payload(PAYLOAD, key()) == SEALED
    envelope = parse_envelope(SEALED)
    assert envelope.payload == PAYLOAD
    assert envelope.keyid == entry()["keyid"]
    assert signer_of(envelope, TRUSTED).owner == "a maintainer"
    value = json.loads(SEALED)
    assert list(value) == ["payloadType", "payload", "signatures"]
    assert value["payloadType"] == PAYLOAD_TYPE == "application/vnd.in-toto+json"
    assert base64.b64decode(value["payload"]) == PAYLOAD


@given(st.integers(0, len(SEALED) - 1), st.integers(0, 7))
@example(len(SEALED) - 1, 0)
def test_a_flipped_bit_anywhere_is_refused(member_name, bit):
    raw = bytearray(SEALED)
    raw[member_name] ^= 1 << bit
    assert refusal(bytes(raw)).step in {"envelope", "signer"}


@given(st.integers(0, len(SEALED)), st.sampled_from([b" ", b"\n", b"\x00", b"A", b'"']))
def test_a_byte_more_is_refused(member_name, byte):
    raw = SEALED[:member_name] + byte + SEALED[member_name:]
    assert raw == SEALED or refusal(raw).step in {"envelope", "signer"}


@given(st.integers(0, len(SEALED) - 1))
def test_what_is_cut_off_is_refused(length):
    assert refusal(SEALED[:length]).step == "envelope"


VALUE = json.loads(SEALED)
SIGNATURE = VALUE["signatures"][0]


@each(
    ("raw", "message"),
    [
        (b"", "the file is empty"),
        (b"[]\n", "the document: Input should be a valid dictionary or instance of Envelope"),
        (rewritten(signatures=[]), "signatures: List should have at least 1 item"),
        (rewritten(signatures=[SIGNATURE] * 2), "signatures: List should have at most 1 item"),
        (rewritten(payloadType="text/plain"), "payloadType: Input should be 'application/vnd"),
        (rewritten(more=1), "more: Extra inputs are not permitted"),
        (rewritten(payload="QQ="), "payload or signature is not valid base64"),
        # The last digit of "QR==" has bits that no byte takes: it is "QQ==" written otherwise.
        (rewritten(payload="QR=="), "the envelope is not written as geneb-ci writes it"),
        (SEALED[:-1], "the envelope is not written as geneb-ci writes it"),
        (json.dumps(VALUE, indent=1).encode(), "the envelope is not written as geneb-ci writes it"),
        (
            SEALED.replace(b'{"payloadType"', b'{"payload":"QQ==","payloadType"'),
            'the key "payload" occurs twice in one object',
        ),
        (b"[" * 100, "values are nested deeper than 16 levels"),
    ],
)
def test_what_is_no_envelope_of_ours_is_named(raw, message):
    error = refusal(raw)
    assert error.step == "envelope"
    assert message in error.message


def test_an_untrusted_key_is_refused():
    error = refusal(sign_payload(PAYLOAD, key("a stranger")))
    assert error.step == "signer"
    assert "is not among the 1 trusted keys" in error.message


def test_a_stranger_cannot_borrow_the_name_of_a_key():
    stranger = json.loads(sign_payload(PAYLOAD, key("a stranger")))["signatures"][0]
    error = refusal(rewritten(signatures=[SIGNATURE | {"sig": stranger["sig"]}]))
    assert error.step == "signer"
    assert "the signature is not that of" in error.message


def test_a_signature_of_the_wrong_length_is_no_signature():
    short = base64.b64encode(b"short").decode()
    envelope = parse_envelope(rewritten(signatures=[SIGNATURE | {"sig": short}]))
    assert not is_signed_by(envelope, key().public_key().public_bytes_raw())
