"""The probe of record: fit it on embeddings, and score its predictions.

Internal: other programs call `geneb-harness`.
"""
