"""Shared by all packages: errors, findings, settings, the benchmark definition."""
