"""Signed statements of an audit, and their verification from public data.

Internal: programs use `geneb_ci` itself.
"""
