"""The harness as a process of its own: its commands, its limits, and where it finds tasks.

Internal: programs use `geneb_ci` itself.
"""
