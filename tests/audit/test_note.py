"""Notes as C2SP specifies them: keys, checkpoints, cosignatures; published examples among them."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from geneb_ci.audit.log.checkpoint import (
    COSIGNATURE,
    ED25519,
    NotANote,
    NoteKey,
    WitnessSignature,
    check_signed,
    note_key_id,
    parse_checkpoint,
    parse_key,
    signed_checkpoint,
    witnesses_of,
)
from geneb_ci.audit.record.envelope import is_ed25519
from reference_harness.formats.merkle import root_of

KEY = Ed25519PrivateKey.from_private_bytes(b"a" * 32)
WITNESS = Ed25519PrivateKey.from_private_bytes(b"b" * 32)
ORIGIN = "example.org/audits"
OWN = NoteKey(ORIGIN, ED25519, KEY.public_key().public_bytes_raw())
SEEN_BY = NoteKey("witness.example/w1", COSIGNATURE, WITNESS.public_key().public_bytes_raw())
TIME = 1_679_315_147

# The key and the note of the documentation of golang.org/x/mod/sumdb/note.
PUBLISHED_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PUBLISHED_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
PUBLISHED_SIGNATURE = (
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
)
# The checkpoint of c2sp.org/tlog-cosignature.
EXAMPLE = """\
example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/\
Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/\
zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
"""


def cosigned(note: str, time: int = TIME) -> str:
    """Add the line of a witness, made here from the words of the specification."""
    body = note[: note.rindex("\n\n") + 1]
    message = f"cosignature/v1\ntime {time}\n{body}".encode()
    raw = SEEN_BY.id + time.to_bytes(8, "big") + WITNESS.sign(message)
    return f"{note}— {SEEN_BY.name} {base64.b64encode(raw).decode()}\n"


def test_a_published_key_and_its_signature():
    key = parse_key(PUBLISHED_KEY)
    raw = base64.b64decode(PUBLISHED_SIGNATURE)
    assert (key.name, key.id.hex(), key.text) == ("PeterNeumann", "c74f20a3", PUBLISHED_KEY)
    assert raw[:4] == key.id == note_key_id("PeterNeumann", ED25519, key.raw)
    assert is_ed25519(raw[4:], PUBLISHED_TEXT.encode(), key.raw)


def test_the_checkpoint_of_the_specification():
    found = parse_checkpoint(EXAMPLE.encode())
    assert (found.origin, found.size) == ("example.com/behind-the-sofa", 20_852_163)
    assert base64.b64encode(found.root) == b"CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
    assert [one.name for one in found.signatures] == [
        "example.com/behind-the-sofa",
        "witness.example.com/w1",
    ]
    assert int.from_bytes(found.signatures[1].signature[:8], "big") == TIME
    assert found.note == EXAMPLE


def test_what_is_signed_reads_back():
    made = signed_checkpoint(ORIGIN, 0, root_of([]), KEY)
    found = parse_checkpoint(made.note.encode())
    assert found == made
    check_signed(found, [OWN])
    assert made.text == f"{ORIGIN}\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"


def test_a_witness_counts_where_its_key_is_known_and_is_kept_where_it_is_not():
    note = cosigned(signed_checkpoint(ORIGIN, 0, root_of([]), KEY).note)
    found = parse_checkpoint(note.encode())
    check_signed(found, [OWN])
    assert witnesses_of(found, [SEEN_BY]) == [WitnessSignature("witness.example/w1", TIME)]
    assert witnesses_of(found, []) == []
    assert found.note == note


def test_wrong_signatures_of_known_keys_refuse_the_note():
    note = cosigned(signed_checkpoint(ORIGIN, 0, root_of([]), KEY).note)
    found = parse_checkpoint(note.replace("\n0\n", "\n1\n").encode())
    with pytest.raises(NotANote, match=r"the signature by example\.org/audits is not over this"):
        check_signed(found, [OWN])
    with pytest.raises(NotANote, match=r"the cosignature by witness\.example/w1 is not over"):
        witnesses_of(found, [SEEN_BY])
    other = NoteKey(ORIGIN, ED25519, SEEN_BY.raw)
    with pytest.raises(NotANote, match="none of the log's keys signed it"):
        check_signed(found, [other])


@pytest.mark.parametrize(
    "note",
    [
        "",
        "x",
        "x\n",
        "x\n\n",
        "x\n\ny\n",
        EXAMPLE[:-1],
        EXAMPLE.replace("20852163", "020852163"),
        EXAMPLE.replace("20852163", "-1"),
        EXAMPLE.replace("20852163\n", ""),
        EXAMPLE.replace("q2I=", "q2J="),
        EXAMPLE.replace("example.com/behind-the-sofa\n2", "\n2"),
        EXAMPLE.replace("— ", "- "),
        EXAMPLE.replace("sofa\n2", "sofa\r\n2"),
        EXAMPLE + "— w AAAA\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(note):
    with pytest.raises(NotANote):
        parse_checkpoint(note.encode())
    with pytest.raises(NotANote):
        parse_checkpoint(note.encode() + b"\xff")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "na me" + PUBLISHED_KEY.removeprefix("PeterNeumann"),
        PUBLISHED_KEY.replace("c74f20a3", "c74f20a4"),
        PUBLISHED_KEY.replace("c74f20a3", "C74F20A3"),
        PUBLISHED_KEY[:-4],
        PUBLISHED_KEY.replace("+AR", "+Ah"),
    ],
)
def test_what_is_no_key_is_refused(text):
    with pytest.raises(NotANote):
        parse_key(text)
