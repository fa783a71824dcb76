"""Shared by all packages: errors, findings, settings, the benchmark definition.

Internal: programs use `geneb_ci` itself.
"""
