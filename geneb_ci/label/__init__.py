"""Trust levels, computed from evidence and never typed."""
