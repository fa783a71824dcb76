"""What both programs share: formats of files, and helpers to read, write and report them.

They need only pydantic. `schemas/` is generated from them.

Internal to the two programs: others read the schemas.
"""
