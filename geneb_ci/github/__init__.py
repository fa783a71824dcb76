"""Check pull requests on GitHub, write a comment, label and status on each, and list the queue.

Internal: programs use `geneb_ci` itself.
"""
