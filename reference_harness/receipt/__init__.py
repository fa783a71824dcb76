"""Receipts: the embeddings of a run, rounded to float16, in files that a Merkle root commits to.

Internal: programs call `geneb-harness`.
"""
