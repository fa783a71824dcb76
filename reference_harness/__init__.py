"""Run an extractor on the pinned task data; write a run record and a submission.

Internal: other programs call `geneb-harness`, and extractors import `extractors.base`.
"""
