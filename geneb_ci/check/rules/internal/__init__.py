"""Faults of geneb-ci itself."""
