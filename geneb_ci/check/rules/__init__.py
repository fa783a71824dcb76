"""The rules by family: pure functions, each above its texts; without logic, texts alone.

Internal: programs use `geneb_ci` itself.
"""
