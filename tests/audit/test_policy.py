"""The policy of audits: the shipped one, a place's own, and what is none."""

import pytest

from geneb_ci.audit.sampling import AuditPolicy, audit_policy, load_policy
from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.common.errors import BadConfiguration
from tests.audit.place import POLICY
from tests.paths import ROOT


def test_the_shipped_policy():
    assert audit_policy(Layout(LayoutKind.ALONE, ROOT)).model_dump() == {
        "drawn": 13,
        "stratified": False,
        "regimes": ["full", "10shot", "1shot"],
        "minimum_drawn": 13,
        "minimum_rows": 1500,
        "minimum_level": 2,
        "canonical": True,
        "aborts": 3,
        "receipt_days": 30,
        "fallback_keys": [],
        "spent_keys": [],
    }


def test_a_place_has_its_own(tmp_path):
    place = Layout(LayoutKind.GENEB_CI, tmp_path, policy=tmp_path)
    assert audit_policy(place) == audit_policy(Layout(LayoutKind.ALONE, ROOT)), (
        "none yet: the shipped one"
    )
    (tmp_path / "policy.toml").write_text(POLICY)
    assert audit_policy(place).drawn == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("drawn = 2", "", "[audit] drawn: Field required"),
        ("drawn = 2", "drawn = 0", "[audit] drawn: Input should be greater than or equal to 1"),
        ("drawn = 2", 'drawn = "2"', "[audit] drawn: Input should be a valid integer"),
        ("drawn = 2", "drawn = true", "[audit] drawn: Input should be a valid integer"),
        ("drawn = 2", "drawn = 2\nk = 3", "[audit] k: Extra inputs are not permitted"),
        ("stratified = false", "stratified = 0", "[audit] stratified: Input should be a valid"),
        ('"1shot"', '"full"', "lists one twice"),
        ('["full", "10shot", "1shot"]', "[]", "[audit] regimes: List should have at least 1"),
        ("minimum_drawn = 2", "minimum_drawn = 3", "no audit could verify a row"),
        ("minimum_level = 2", "minimum_level = 0", "[audit] minimum_level: Input should be 1, 2"),
        ("minimum_level = 2", "minimum_level = 5", "[audit] minimum_level: Input should be 1, 2"),
        ("stratified", 'fallback_keys = ["x"]\nstratified', "[audit] fallback_keys/0: String"),
        ("[audit]", "[audits]", "[audit] cannot be read: 'audit'"),
        ("[audit]", "[audit", "[audit] cannot be read: "),
        ("[audit]", "audit = 3\n[x]", "[audit] the table: Input should be"),
    ],
)
def test_nonsense_is_refused(tmp_path, old, new, message):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.replace(old, new, 1))
    with pytest.raises(BadConfiguration) as caught:
        load_policy(path)
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{path}: ")


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfiguration, match="cannot be read"):
        load_policy(path)


def test_every_setting_is_in_the_shipped_file():
    text = (ROOT / "leaderboard/policy/policy.toml").read_text(encoding="utf-8")
    for name in AuditPolicy.model_fields:
        assert f"{name} = " in text
