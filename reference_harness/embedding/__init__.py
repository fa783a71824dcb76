"""Embed sequences in batches that fit the memory, and keep the embeddings in a cache."""
