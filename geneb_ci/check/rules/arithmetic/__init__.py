"""Scores that no set of predictions can have."""
