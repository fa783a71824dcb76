"""Hostile bytes in, located documents out: the only code that touches untrusted bytes."""
