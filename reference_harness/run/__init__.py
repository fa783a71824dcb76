"""One run: settings, tasks, progress, run record and submission.

Internal: other programs call `geneb-harness`.
"""
