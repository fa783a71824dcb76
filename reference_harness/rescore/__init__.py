"""Score embeddings of an audit, and noisy copies of them."""
