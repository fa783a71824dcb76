"""Locks: what they hold, what the index publishes, and whether the one covers the other."""
