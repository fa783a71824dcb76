"""The board as a pure function of the submissions."""
