"""Settings of the repository of a board: which are required, how each is read and set.

Internal: programs use `geneb_ci` itself.
"""
