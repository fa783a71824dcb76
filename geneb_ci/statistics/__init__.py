"""Decide which scores are possible, and which are probable given the other rows.

Internal: programs use `geneb_ci` itself.
"""
