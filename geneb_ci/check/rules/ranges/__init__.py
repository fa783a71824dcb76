"""Scores within the bounds of their metric."""
