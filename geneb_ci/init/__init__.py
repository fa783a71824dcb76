"""Make a new board: its files, its key and first row, and its settings and App on GitHub.

Internal: programs use `geneb_ci` itself.
"""
