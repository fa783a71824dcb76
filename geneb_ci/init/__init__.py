"""A new board: its files, its key and first row, its settings and App on GitHub.

Internal: programs use `geneb_ci` itself.
"""
