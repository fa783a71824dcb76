"""diagnostics.json: statistics about the board; docs/reader/diagnostics.md explains each figure.

Internal: programs use `geneb_ci` itself.
"""
