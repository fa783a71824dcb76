"""Receipts: the embeddings of a run, rounded to float16, in files with a Merkle root.

Internal: other programs call `geneb-harness`.
"""
