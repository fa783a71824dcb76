"""Tests of which scores can exist, and of what rows say of each other."""
