"""Verdicts on pull requests: data, what is collected, what is decided, what is handed on.

Internal: programs use `geneb_ci` itself.
"""
