"""Ranges of the metrics."""
