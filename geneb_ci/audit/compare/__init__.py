"""Comparison of claims with a rerun, and the verdict that follows.

Internal: programs use `geneb_ci` itself.
"""
