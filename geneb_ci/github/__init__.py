"""GitHub: what a pull request changes, one comment, labels, a status, and the queue."""
