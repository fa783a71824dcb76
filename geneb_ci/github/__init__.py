"""GitHub: reads pull requests; writes one comment, one label and one status; lists the queue.

Internal: programs use `geneb_ci` itself.
"""
