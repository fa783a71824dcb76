"""diagnostics.json: what the board says beyond one rank. Each figure: docs/reader/diagnostics.md.

Internal: programs use `geneb_ci` itself.
"""
