"""Turns an extractor and the pinned task data into a run record and a submission."""
