"""Findings in, text out: one renderer a format, each of which escapes what contributors wrote."""
