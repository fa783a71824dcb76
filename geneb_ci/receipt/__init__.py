"""Receipts: files of embeddings that a submission commits to, read as hostile bytes.

Internal: programs use `geneb_ci` itself.
"""
