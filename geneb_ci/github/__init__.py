"""GitHub: reads pull requests; writes one comment, one label and one status; lists the queue."""
