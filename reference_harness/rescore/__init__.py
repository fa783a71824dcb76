"""Score embeddings of an audit, and noisy copies of them.

Internal: other programs call `geneb-harness`.
"""
