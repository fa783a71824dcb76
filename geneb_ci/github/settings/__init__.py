"""Settings of the repository of a board: which are wanted, how each is read and set."""
