"""Parses untrusted files into documents with positions; no other package parses them.

Internal: programs use `geneb_ci` itself.
"""
