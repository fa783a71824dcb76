"""What both programs read: submissions, run records, rescorings; the toolkit imports nothing else.

They need pydantic alone. `schemas/` is generated from them.
"""
