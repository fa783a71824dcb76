"""What the rows of a board say of one another, in plain Python: numpy costs more to import."""
