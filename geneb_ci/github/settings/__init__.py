"""Settings of the repository of a board: which are wanted, how each is read and set.

Internal: programs use `geneb_ci` itself.
"""
