"""Find an extractor by name or path, build it, and describe it and the weights that it loaded.

Internal: other programs call `geneb-harness`.
"""
