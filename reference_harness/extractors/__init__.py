"""Extractors: what turns DNA sequences into embeddings. Upstream's interface and two built-ins."""
