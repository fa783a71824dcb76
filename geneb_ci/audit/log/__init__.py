"""The transparency log of audits: entries, checkpoints, and what they say of a record.

Internal: programs use `geneb_ci` itself.
"""
