"""Task data and the benchmark that they belong to: download, verify, read, define.

Internal: other programs call `geneb-harness`.
"""
