"""Our DSSE envelopes against those of securesystemslib, which sigstore and in-toto build on."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._crypto_signer import CryptoSigner
from securesystemslib.signer._key import SSlibKey

from geneb_ci.audit.record.envelope import (
    PAYLOAD_TYPE,
    is_signed_by,
    key_id,
    parse_envelope,
    pre_authentication_encoding,
    sign_payload,
)
from tests.audit import recorded

PAYLOADS = [b"", b"{}", "é\u2028\U0001f9ec".encode(), bytes(range(256)) * 300]


def public(key: Ed25519PrivateKey) -> SSlibKey:
    raw = key.public_key().public_bytes_raw()
    return SSlibKey(key_id(raw), "ed25519", "ed25519", {"public": raw.hex()})


def theirs(raw: bytes) -> Envelope:
    return Envelope.from_dict(json.loads(raw))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_signed_bytes_are_the_same(payload):
    assert (
        pre_authentication_encoding(PAYLOAD_TYPE, payload)
        == Envelope(payload, PAYLOAD_TYPE, {}).pae()
    )


@pytest.mark.parametrize("payload", PAYLOADS[1:])
def test_they_verify_what_we_sign(payload):
    key = recorded.key()
    accepted = theirs(sign_payload(payload, key)).verify([public(key)], 1)
    assert list(accepted) == [public(key).keyid]
    with pytest.raises(VerificationError):
        theirs(sign_payload(payload, recorded.key("another"))).verify([public(key)], 1)


def test_they_verify_a_record_of_an_audit_and_read_its_statement():
    raw = recorded.submission_bytes()
    outcome = recorded.outcome_of(recorded.plan_for(raw), raw)
    result = theirs(recorded.record_bytes(outcome))
    result.verify([public(recorded.key())], 1)
    statement: dict[str, Any] = json.loads(result.payload)
    assert statement == recorded.statement_of(outcome)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"


def test_we_verify_what_they_sign():
    key = recorded.key()
    envelope = Envelope(b'{"a":1}', PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key, public(key)))
    [signature] = envelope.to_dict()["signatures"]
    assert signature == json.loads(sign_payload(envelope.payload, key))["signatures"][0] | {
        "sig": signature["sig"]
    }
    ours = parse_envelope(sign_payload(envelope.payload, key))
    assert is_signed_by(
        ours._replace(signature=bytes.fromhex(envelope.signatures[ours.keyid].signature)),
        key.public_key().public_bytes_raw(),
    )


def test_a_changed_payload_is_refused_by_both():
    key = recorded.key()
    content = json.loads(sign_payload(b'{"a":1}', key))
    content["payload"] = json.loads(sign_payload(b'{"a":2}', key))["payload"]
    forged = json.dumps(content, separators=(",", ":")).encode() + b"\n"
    assert not is_signed_by(parse_envelope(forged), key.public_key().public_bytes_raw())
    with pytest.raises(VerificationError):
        theirs(forged).verify([public(key)], 1)
