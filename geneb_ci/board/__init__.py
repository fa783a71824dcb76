"""The board as a pure function of the submissions.

Internal: programs use `geneb_ci` itself.
"""
