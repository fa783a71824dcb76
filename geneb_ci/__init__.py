"""Checks, audits and publishes the GENEB leaderboard of DNA foundation models."""

__version__ = "0.1.0"
