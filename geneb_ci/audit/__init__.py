"""Audits: an unforeseeable sample of tasks, rerun in a sandbox, compared, signed."""
