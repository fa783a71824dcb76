"""Which scores can exist, and what the rows of a board say of each other."""
