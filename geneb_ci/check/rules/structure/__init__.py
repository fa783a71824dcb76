"""Bytes, JSON and the shape of the format."""
