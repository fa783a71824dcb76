"""The comment on a pull request: a hidden line for programs, then verdict, findings and rank.

The first line is hidden, and has the commit and the verdict. It is base64 in an HTML comment, so a
contributor's text in it is inert and "-->" cannot occur. Copies in comments by other accounts are
ignored.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from geneb_ci.check.registry import BY_ID
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.github.errors import EFFECT_TIME
from geneb_ci.github.replies import Comment, Pull, is_account
from geneb_ci.github.verdict.model import (
    SIMILAR_ROWS_COMPARED,
    AuditEstimate,
    CommandName,
    CommandState,
    Neighbour,
    PullOutcome,
    PullVerdict,
    RowComparison,
    RowStanding,
)
from geneb_ci.github.verdict.words import TITLES, next_step
from geneb_ci.render.formats import findings_by_rule
from geneb_ci.render.markdown import (
    CHARACTERS_MAX,
    code_span,
    finding_blocks,
    fitting_blocks,
    table_cell,
)
from geneb_ci.render.table import Table
from reference_harness.formats.text import plural

if TYPE_CHECKING:
    from geneb_ci.github.api import GitHub

VERDICT_MARKER = "<!-- geneb-ci:verdict:1 "
"""Beginning of our comment with the verdict on a pull request."""
_VERDICT_LINE = re.compile(re.escape(VERDICT_MARKER) + r"([A-Za-z0-9+/=]{1,32000}) -->")
"""First line of our comment with a verdict, which is hidden and has the verdict as base64."""
_OMISSION_LINE_MAX = 120  # characters of the line that counts the findings not listed
_RULE_LINKS_MAX = 20  # links to rules in the last line of the comment
_SHOWN_SHA_DIGITS = 12
_COMMAND_TEXTS = {
    CommandName.RECHECK: "Checked again, as {} asked.",
    CommandName.AUDIT: "{} asked for an audit. It begins " + EFFECT_TIME + ".",
    CommandName.DISPUTE: (
        "Disputed by {}: {}. The pull request does not pass until a maintainer comments {}."
    ),
}
"""Sentence about each command of a maintainer, with places for login, reason and command."""


def marker_line(verdict: PullVerdict) -> str:
    """Return the hidden line that keeps a verdict."""
    encoded_verdict = base64.b64encode(verdict.for_comment.model_dump_json().encode()).decode()
    return f"{VERDICT_MARKER}{encoded_verdict} -->\n"


def read_verdict(body: str) -> PullVerdict | None:
    """Return the verdict in the hidden line of a comment; None without a valid one."""
    match = _VERDICT_LINE.match(body)
    if match is None:
        return None
    try:
        verdict = PullVerdict.model_validate_json(base64.b64decode(match[1], validate=True))
    except (ValidationError, binascii.Error):
        return None
    # Another version may have written it and may have other rules; its commands stay valid.
    rule_counts = {rule: count for rule, count in verdict.places.items() if rule in BY_ID}
    return verdict.model_copy(update={"places": rule_counts})


def verdict_on(github: "GitHub", pull: Pull) -> PullVerdict | None:
    """Return the verdict in our comment on a pull request, also on an earlier commit, or None.

    One request per 100 comments, unless they were read.
    """
    conversation = github.conversations.get(pull.number)
    comments = github.comments(pull.number) if conversation is None else conversation.comments
    return verdict_in(comments, github.own_account_id, pull.number)


def commands_of(verdict: PullVerdict | None) -> CommandState:
    """Return the maintainers' commands in force that a verdict contains; none without a verdict."""
    return verdict.command_state if verdict is not None else CommandState()


def verdict_in(comments: Iterable[Comment], own_account_id: int, number: int) -> PullVerdict | None:
    """Return the verdict in our comment among `comments`; None without one on this pull request."""
    comment = own_comment(comments, own_account_id)
    verdict = read_verdict(comment.body) if comment is not None else None
    return verdict if verdict is not None and verdict.number == number else None


def own_comment(
    comments: Iterable[Comment], own_account_id: int, marker: str = VERDICT_MARKER
) -> Comment | None:
    """Return our comment, identified by both account and marker; None if there is none."""
    for comment in comments:
        if is_account(comment.user, own_account_id) and comment.body.startswith(marker):
            return comment
    return None


def rank_section(verdict: PullVerdict) -> str:
    """Return the section on rank and neighbours of a row without errors; "" if there is none."""
    section_parts = []
    if verdict.comparison is not None:
        section_parts.append(_category_table(verdict.comparison))
    if verdict.standings:
        section_parts.append(_regime_table(verdict.standings))
    if verdict.neighbour is not None:
        section_parts.append(_neighbour_text(verdict.neighbour))
    section = "\n### Rank on the board\n\n" + "\n".join(section_parts) if section_parts else ""
    return section + (_audit_section(verdict.audit) if verdict.audit is not None else "")


def _category_table(comparison: RowComparison) -> str:
    """Return the table of category scores of the row and of the rows that it is compared with."""
    headings = [
        _column_heading(number, name, comparison.best)
        for number, name in enumerate(comparison.models)
    ]
    head = [f"{table_cell(comparison.metric)}, {table_cell(comparison.regime)}", *headings]
    rows = [
        [table_cell(row.category), *(f"{s:.3f}" for s in row.scores)]
        for row in comparison.categories
    ]
    return _markdown_table(head, rows)


def _column_heading(number: int, model: str, best: str) -> str:
    """Return the heading of a row's scores; the first is the row of the pull request."""
    if number == 0:
        return "this row, the best" if model == best else "this row"
    near_word = "near" if number <= SIMILAR_ROWS_COMPARED else ""
    words = ", ".join(word for word in (near_word, "best" if model == best else "") if word)
    return f"{words}: {table_cell(model)}"


def _regime_table(standings: Sequence[RowStanding]) -> str:
    """Return the table of the row's rank and significant differences in each regime."""
    columns = [
        ["regime", *(table_cell(standing.regime) for standing in standings)],
        ["mean over categories", *(f"{standing.score:.3f}" for standing in standings)],
        ["rank", *map(_rank_text, standings)],
        ["previous rank", *map(_previous_rank_text, standings)],
    ]
    if any(standing.decided is not None for standing in standings):
        columns += [
            [
                "significantly better than",
                *(_significant_count_text(standing, "better_than") for standing in standings),
            ],
            [
                "significantly worse than",
                *(_significant_count_text(standing, "worse_than") for standing in standings),
            ],
            ["could be best in", *map(_could_be_best_text, standings)],
        ]
    head, *rows = zip(*columns, strict=True)
    return _markdown_table(head, rows)


def _rank_text(standing: RowStanding) -> str:
    decided = standing.decided
    decided_range = (
        f" (range {decided.rank_low} to {decided.rank_high})" if decided is not None else ""
    )
    return f"{standing.rank}{decided_range} of {standing.rows}"


def _significant_count_text(standing: RowStanding, side: str) -> str:
    """Return the number of rows that are significantly better or worse, as text."""
    return "unknown" if standing.decided is None else plural(getattr(standing.decided, side), "row")


def _could_be_best_text(standing: RowStanding) -> str:
    """Return the number of categories in which the row could be best, as text."""
    decided = standing.decided
    return "unknown" if decided is None else f"{decided.best_in} of {decided.categories} categories"


def _previous_rank_text(standing: RowStanding) -> str:
    """Return the rank of the row that this row replaces, as text."""
    if standing.before is None:
        return "new row"
    return "unchanged" if standing.before == standing.rank else str(standing.before)


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = Table(tuple(head), rows, right_aligned=frozenset(head[1:])).markdown_lines()
    return "".join(f"{line}\n" for line in lines)


def _neighbour_text(neighbour: Neighbour) -> str:
    """Return the sentence about the published row with the most scores in common."""
    return (
        f"Most similar row: {table_cell(neighbour.model)}, with {neighbour.near:,} of "
        f"{neighbour.cells:,} scores equal within rerun noise; "
        f"with {neighbour.limit:,} or more equal scores, this row would count as a copy.\n"
    )


def _audit_section(audit: AuditEstimate) -> str:
    """Return the section on the cost and the detection probability of an audit."""
    sequences = f"about {audit.sequences:,} test sequences and " if audit.sequences else ""
    return (
        f"\n### Cost and power of an audit\n\nAn audit reruns {audit.drawn} of {audit.tasks} "
        "tasks, drawn at random after the submission is fixed. It embeds and scores "
        f"{sequences}the training sequences of those tasks. If {audit.fabricated} of the "
        f"{audit.tasks} scores were fabricated, the sample would include at least one of them "
        f"with probability {audit.detection:.1%}.\n"
    )


def verdict_comment(verdict: PullVerdict, repository: str) -> str:
    """Return the text of the comment, a deterministic function of the verdict and the address.

    `repository` is the address of the board's repository for git, since a contributor's `origin`
    is a fork. The comment lists errors and warnings, then the row's rank, then notes.
    """
    findings = [
        replace(listed.finding, file=listed.file or "this pull request")
        for listed in verdict.findings
    ]
    notes = [finding for finding in findings if finding.severity is Severity.NOTE]
    urgent = [finding for finding in findings if finding.severity is not Severity.NOTE]
    head, middle, foot = (
        marker_line(verdict) + _opening_section(verdict, repository),
        rank_section(verdict),
        _closing_section(verdict),
    )
    characters_left = CHARACTERS_MAX - len(head) - len(middle) - len(foot) - _OMISSION_LINE_MAX
    urgent_blocks, unlisted = _fitting_blocks(verdict, urgent, characters_left)
    note_blocks, unlisted_notes = _fitting_blocks(
        verdict, notes, characters_left - len(urgent_blocks)
    )
    unlisted += unlisted_notes + sum(verdict.places.values()) - len(findings)
    omission_text = (
        f"\n**{unlisted:,} more** are not listed here; `geneb-ci check` lists them all.\n"
        if unlisted
        else ""
    )
    return f"{head}{urgent_blocks}{middle}{note_blocks}{omission_text}{foot}"


def _opening_section(verdict: PullVerdict, repository: str) -> str:
    """Return the first section: the outcome, the number of findings, and the next step."""
    model = code_span(verdict.model) if verdict.model else "No submission"
    sha = code_span(verdict.head_sha[:_SHOWN_SHA_DIGITS])
    step = next_step(verdict)
    if verdict.outcome is PullOutcome.CHANGES_NEEDED:
        step += f" `git fetch {repository} main && geneb-ci check --base FETCH_HEAD`"
    return (
        f"## geneb-ci: {TITLES[verdict.outcome]}\n\n"
        f"{model} at commit {sha}: {verdict.counts}.\n\n**Next step.** {step}\n"
        f"{_command_text(verdict)}"
    )


def _command_text(verdict: PullVerdict) -> str:
    """Return the text on commands of maintainers; "" if they gave none."""
    commands = [command for command in (verdict.dispute, verdict.command) if command is not None]
    sentences = [
        _COMMAND_TEXTS[command.name].format(
            code_span(command.login), code_span(command.reason), code_span("/recheck")
        )
        for command in commands
    ]
    return f"\n{' '.join(sentences)}\n" if sentences else ""


def _rules_text(verdict: PullVerdict) -> str:
    """Return the command that explains a rule, and links to the rules in a verdict."""
    linked_rules = list(verdict.places)[:_RULE_LINKS_MAX]
    links = ", ".join(f"[{rule}](../blob/HEAD/RULES.md#{rule})" for rule in linked_rules)
    return f"`geneb-ci explain RULE`{': ' if links else ''}{links}"


def _fitting_blocks(
    verdict: PullVerdict, findings: Sequence[Finding], room: int
) -> tuple[str, int]:
    """Return the blocks of findings that fit into `room` characters, and how many are left out."""
    return fitting_blocks(finding_blocks(findings_by_rule(list(findings)), verdict.places), room)


def _closing_section(verdict: PullVerdict) -> str:
    """Return the last section: the checked files, and links to the rules."""
    digests = [
        f"- {code_span(file.path)}: sha256 {code_span(file.sha256)}" for file in verdict.files
    ]
    file_list = "This verdict applies to exactly these files:\n\n" + "\n".join(digests) + "\n\n"
    return (
        f"\n---\n\n{file_list if digests else ''}To explain a rule: {_rules_text(verdict)}. "
        f"Base commit: {code_span(verdict.base_sha[:_SHOWN_SHA_DIGITS])}.\n"
    )
