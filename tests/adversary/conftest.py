"""Scores that audits without a sandbox share."""

from tests.audit.conftest import kept_scores

__all__ = ["kept_scores"]  # a fixture: pytest finds it by its name here
