"""Keys: made for their owner's eyes, trusted only by keys.json, and only while they are valid."""

import json
import os
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import sign_payload
from geneb_ci.audit.record.keys import (
    KEY_VARIABLE,
    TrustedKey,
    check_validity,
    private_key,
    trusted_keys,
)
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import BadConfiguration, UsageProblem
from tests.audit.recorded import entry, key, repository


def test_keygen_writes_a_key_that_nobody_else_may_read_and_prints_its_entry(tmp_path, capsys):
    path = tmp_path / "key.pem"
    os.umask(os.umask(0))
    assert main(["audit", "keygen", "--output", str(path), "--owner", "Jo Doe"]) == 0
    out, err = capsys.readouterr()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text(encoding="ascii")
    assert text.startswith("-----BEGIN PRIVATE KEY-----")
    assert all(line not in out + err for line in text.splitlines())
    trusted_key = TrustedKey.model_validate(json.loads(out))
    assert trusted_key.raw == private_key(path).public_key().public_bytes_raw()
    assert (trusted_key.owner, trusted_key.valid_until, trusted_key.revoked_at) == (
        "Jo Doe",
        None,
        None,
    )
    assert (
        "add the entry above to leaderboard/policy/keys.json; the key is trusted once this entry "
        "is on main" in " ".join(err.split())
    )


def test_keygen_never_overwrites(tmp_path, capsys):
    path = tmp_path / "key.pem"
    path.write_text("precious")
    assert main(["audit", "keygen", "--output", str(path)]) == 2
    assert "a key is never overwritten" in capsys.readouterr().err
    assert path.read_text() == "precious"
    link = tmp_path / "link.pem"
    link.symlink_to(tmp_path / "elsewhere.pem")
    assert main(["audit", "keygen", "--output", str(link)]) == 2
    assert not (tmp_path / "elsewhere.pem").exists()


def test_the_key_comes_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "key.pem"
    main(["audit", "keygen", "--output", str(path)])
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    assert sign_payload(b"x", private_key(None)) == sign_payload(b"x", private_key(path))
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageProblem, match="there is no private key to sign with") as caught:
        private_key(None)
    assert caught.value.fix.startswith("pass --key FILE, or set ")
    (tmp_path / "keys").mkdir()
    path.rename(tmp_path / "keys/audit.pem")
    with pytest.raises(UsageProblem, match="there is no private key to sign with") as caught:
        private_key(None)
    assert caught.value.fix.startswith("pass --key keys/audit.pem, or set ")


def test_a_key_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "key.pem"
    main(["audit", "keygen", "--output", str(path)])
    path.chmod(0o640)
    with pytest.raises(
        UsageProblem, match="other users can read this key: mode 0640, expected 0600"
    ):
        private_key(path)


def test_what_is_no_ed25519_key_is_refused(tmp_path):
    path = tmp_path / "key.pem"
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for content, message in (
        (b"no key", "not a private key"),
        (other, "this is not an Ed25519 key"),
    ):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(UsageProblem, match=message):
            private_key(path)
    with pytest.raises(UsageProblem, match="cannot be read"):
        private_key(tmp_path / "none.pem")


def test_keys_are_those_of_the_policy(tmp_path):
    layout = find_layout(repository(tmp_path))
    assert list(trusted_keys(layout)) == [entry()["keyid"]]


def test_a_policy_without_keys_trusts_nobody(tmp_path):
    root = repository(tmp_path)
    (root / "leaderboard/policy/keys.json").unlink()
    assert trusted_keys(find_layout(root)) == {}


def test_the_shipped_keys_can_be_read_and_are_none(tmp_path):
    assert trusted_keys(find_layout(tmp_path)) == {}


OTHER = entry(key("another"))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([entry() | {"keyid": OTHER["keyid"]}], "keyid is not"),
        ([entry(), entry()], " is listed 2 times"),
        ([entry() | {"valid_from": "2023-13-01T00:00:00Z"}], "is not a time"),
        (
            [entry() | {"valid_until": "2022-06-01T00:00:00Z"}],
            "valid_until 2022-06-01T00:00:00Z is before valid_from 2023-01-01T00:00:00Z",
        ),
        *(
            ([entry() | {name: value}], f"{name} is given without revoked_at")
            for name, value in (("revoked_from", 3), ("revoked_after", ["0" * 64]))
        ),
        ([entry() | {"revoked_at": "soon"}], "revoked_at: String should match pattern"),
        ([entry() | {"public_key": "AAAA"}], "public_key: String should match pattern"),
        ([entry() | {"role": "admin"}], "role: Extra inputs are not permitted"),
        ({}, "keys: Input should be a valid list"),
    ],
)
def test_a_broken_key_file_is_refused_whole(tmp_path, keys, message):
    layout = find_layout(repository(tmp_path, keys=keys))
    with pytest.raises(BadConfiguration) as caught:
        trusted_keys(layout)
    assert message in caught.value.message
    assert "keys.json" in caught.value.message


def test_a_key_that_is_listed_twice_is_refused(tmp_path):
    root = repository(tmp_path)
    (root / "leaderboard/policy/keys.json").write_text('{"keys": [], "keys": []}')
    with pytest.raises(BadConfiguration, match='the key "keys" occurs twice'):
        trusted_keys(find_layout(root))


@pytest.mark.parametrize(
    ("moment", "valid"),
    [
        ("2022-12-31T23:59:59Z", False),
        ("2023-01-01T00:00:00Z", True),
        ("2023-06-01T00:00:00Z", True),
        ("2023-06-01T00:00:01Z", False),
    ],
)
def test_a_key_is_valid_from_its_first_to_its_last_second(moment, valid):
    own = TrustedKey.model_validate(entry(valid_until="2023-06-01T00:00:00Z"))
    if valid:
        check_validity(own, moment, "it was signed")
    else:
        with pytest.raises(StepMismatch) as caught:
            check_validity(own, moment, "it was signed")
        assert caught.value.step == "signer"
