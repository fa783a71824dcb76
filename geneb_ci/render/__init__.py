"""Renders findings, audits and boards; each renderer escapes contributor text for its format.

Internal: programs use `geneb_ci` itself.
"""
