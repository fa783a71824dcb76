"""Regimes, tasks, metrics and declared gaps."""
