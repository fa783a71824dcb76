"""Embed sequences in batches that fit the memory, and keep the embeddings in a cache.

Internal: other programs call `geneb-harness`.
"""
