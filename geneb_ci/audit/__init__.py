"""Audits: an unforeseeable sample, rerun and signed; and the trust levels that follow."""
