"""Signed statements of an audit, and their verification from public data."""
