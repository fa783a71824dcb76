"""Modules that all packages share: errors, findings, settings, the benchmark definition.

Internal: programs use `geneb_ci` itself.
"""
