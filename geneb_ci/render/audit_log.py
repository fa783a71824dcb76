"""Renders the log of audits: its entries as text and as JSON."""

import json
from collections.abc import Iterator

from geneb_ci.audit.applicability import Logged
from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.keys import Keys
from geneb_ci.audit.log import AuditLog
from geneb_ci.audit.log_check import open_starts
from geneb_ci.render.text import escape


def log_text(logged: Logged, keys: Keys) -> str:
    """Return the entries as text, one a line, then what is wrong and who witnessed it."""
    log, running = logged.log, set(open_starts(logged.log.entries))
    lines = []
    for number, one in enumerate(log.entries):
        owner = keys[one.signer].owner if one.signer in keys else f"{one.signer[:16]}..."
        text = f"{number:>5}  {one.not_before}  {one.kind:<10}  {one.file}  {escape(owner)}"
        lines.append(text + ("  (open: no record or abort follows)" if number in running else ""))
    lines += [f"lost: {escape(reason)}" for reason in logged.lost.values()]
    lines.append(f"{log.checkpoint.origin}: {counted(len(log.entries))}")
    return "\n".join([*lines, *witness_lines(log)]) + "\n"


def counted(entries: int) -> str:
    """Return a number of entries with its noun."""
    return f"{entries:,} {'entry' if entries == 1 else 'entries'}"


def witness_lines(log: AuditLog) -> Iterator[str]:
    """Return a line for each known witness that cosigned the checkpoint."""
    for one in log.witnesses:
        yield f"cosigned by {one.name} at {moment_of(one.time)}"


def log_json(logged: Logged, keys: Keys) -> str:
    """Return the entries as JSON."""
    log, running = logged.log, set(open_starts(logged.log.entries))
    value = {
        "schema_version": "1.0",
        "origin": log.checkpoint.origin,
        "size": len(log.entries),
        "root": log.checkpoint.root.hex(),
        "witnesses": [{"name": one.name, "time": moment_of(one.time)} for one in log.witnesses],
        "lost": dict(logged.lost),
        "entries": [
            {
                "number": number,
                "not_before": one.not_before,
                "owner": keys[one.signer].owner if one.signer in keys else None,
                "open": number in running,
                **one.model_dump(),
            }
            for number, one in enumerate(log.entries)
        ],
    }
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"
