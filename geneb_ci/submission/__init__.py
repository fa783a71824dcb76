"""Parses untrusted files into documents with positions; no other package parses them."""
