"""File formats that both programs read: submissions, run records, rescorings.

They need only pydantic. `schemas/` is generated from them.

Internal to the two programs: others read the schemas.
"""
