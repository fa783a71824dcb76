"""Runs an extractor on the pinned task data; writes a run record and a submission.

Internal: programs call `geneb-harness`, and extractors import `extractors.base`.
"""
