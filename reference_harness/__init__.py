"""Runs an extractor on the pinned task data; writes a run record and a submission."""
