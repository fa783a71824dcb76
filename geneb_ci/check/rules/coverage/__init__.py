"""Regimes, tasks, metrics and declared missing cells."""
