"""Other probes on the embeddings of receipts, and how ranks change under them.

Nothing here imports NumPy, so that the command line can list the kinds.
"""

__all__ = ["KINDS", "WHAT"]

WHAT = {
    "logistic": "the benchmark's probe at its optimum",
    "ridge": "ridge regression on the classes",
    "knn": "the nearest embeddings by angle vote",
    "mlp": "a network of one hidden layer",
}
"""Every kind of probe, and what it is."""
KINDS = tuple(WHAT)
