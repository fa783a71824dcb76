"""Run records, rescorings and receipts, which both programs read; the toolkit imports only these.

They need pydantic alone. `schemas/` is generated from them.
"""
