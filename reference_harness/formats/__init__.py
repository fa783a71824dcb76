"""Formats that both programs read: submissions, run records, rescorings.

They need pydantic alone. `schemas/` is generated from them.

Internal to the two programs: others read the schemas.
"""
