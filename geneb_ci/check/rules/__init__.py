"""The rules by family: pure functions, each followed by its texts.

Internal: programs use `geneb_ci` itself.
"""
