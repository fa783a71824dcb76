"""Verdicts on pull requests: their data model, the checks, the decision, and their transport.

Internal: programs use `geneb_ci` itself.
"""
