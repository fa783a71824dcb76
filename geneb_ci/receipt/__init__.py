"""Receipts: files of embeddings that a submission commits to, read as hostile bytes."""
