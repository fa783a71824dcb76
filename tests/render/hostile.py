"""Reports in which every text was chosen by an attacker."""

from hypothesis import settings
from hypothesis import strategies as st

from geneb_ci.check.registry import BY_ID
from geneb_ci.check.runner import Report
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Finding, Severity
from tests.examples import examples
from tests.render.examples import HOSTILE_FILE, HOSTILE_TEXT

FRAGMENTS = (
    *("`", "``", "```", "~~~", "\\", "\\`", "|", "*", "_", " ", "- ", "1. ", "> ", "---", "\t"),
    *("@org/team", "@x", "#1", "fixes #1", "GH-1", "https://evil.example/", "www.evil.example"),
    *("<script>", "</script>", "<img src=x>", "<!-- geneb-ci -->", "<?x", "]]>", "&lt;", "&#64;x"),
    *("![x](http://t/p.png)", "[x](//evil)", "[x][y]", "](", "![", "{0}", "{{", "}"),
    *("::error::x", "::", ":", "##[error]", "##[", "#", "[", "%0A::set-output name=v::x", "%", ","),
    *("\n", "\r\n", "\n::error::x", "\x1b[2J", "\x1b]8;;http://x\x07", "\x9b31m", "\x00", "\x7f"),
    *("\u034f", "\u115f", "\u180b", "\u2800", "\u3164", "\uffa0"),
    *("\u2028", "\u202e", "\u200b", "\u200d", "\ud800", "\udc80", "\ufffe", "\U000e0041"),
    *("漢字", "e\u0301", "=HYPERLINK(1)", HOSTILE_FILE, HOSTILE_TEXT),
)

texts = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.characters(exclude_categories=())), max_size=12
).map("".join)

findings = st.builds(
    Finding,
    rule=st.one_of(st.sampled_from(sorted(BY_ID)), texts),
    severity=st.sampled_from(Severity),
    message=texts,
    file=texts,
    pointer=texts,
    line=st.integers(1, 10**6),
    column=st.integers(1, 10**6),
    found=texts,
    expected=texts,
    fix=texts,
    score=st.floats(0, 10),
)


BRIEF = settings(max_examples=examples(40))
"""Examples of a test of reports, each of which has up to fifty texts."""


@st.composite
def reports(draw):
    report = Report(
        files=draw(st.lists(texts, max_size=3)),
        findings=draw(st.lists(findings, max_size=4)),
        unreadable=[NothingChecked(*pair) for pair in draw(st.lists(st.tuples(texts, texts)))],
        rules=draw(st.sampled_from([0, 61])),
        benchmarks=draw(st.dictionaries(texts, texts, max_size=2)),
    )
    for finding in report.findings:
        text = draw(texts)
        report.excerpts[finding] = (text, draw(st.integers(0, len(text))))
    return report
