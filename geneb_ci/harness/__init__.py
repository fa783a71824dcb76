"""Runs the harness in a separate process, with limits and the location of tasks.

Internal: programs use `geneb_ci` itself.
"""
