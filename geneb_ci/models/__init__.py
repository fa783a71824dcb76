"""The model registry: how each model of the board is loaded, and where its weights are.

Internal: programs use `geneb_ci` itself.
"""
