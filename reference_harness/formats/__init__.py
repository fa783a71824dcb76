"""Files that both programs read, each defined once; the toolkit imports nothing else from here.

They need pydantic alone. `schemas/` is generated from them.
"""
