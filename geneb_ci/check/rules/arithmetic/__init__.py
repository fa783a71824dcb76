"""Scores that no predictions can give."""
