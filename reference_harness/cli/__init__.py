"""The commands of `geneb-harness`.

Internal: other programs call `geneb-harness`.
"""
