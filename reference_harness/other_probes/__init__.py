"""Other probes on the embeddings of receipts, and the ranks that result from them.

Nothing here imports NumPy, so that the command line can list the kinds.
"""

__all__ = ["DESCRIPTIONS", "KINDS"]

DESCRIPTIONS = {
    "logistic": "the benchmark's probe at its optimum",
    "ridge": "a ridge classifier",
    "knn": "a majority of the nearest embeddings by angle",
    "mlp": "a network with one hidden layer",
}
"""Description of each kind of probe."""
KINDS = tuple(DESCRIPTIONS)
