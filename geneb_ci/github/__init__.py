"""Reads pull requests on GitHub, writes a comment, a label and a status on each, lists the queue.

Internal: programs use `geneb_ci` itself.
"""
