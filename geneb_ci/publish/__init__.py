"""Publishes the board on the Space in one commit, with a ledger of the history of each row.

Internal: programs use `geneb_ci` itself.
"""
