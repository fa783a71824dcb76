"""Comparison of claims with a rerun, and the verdict that follows."""
