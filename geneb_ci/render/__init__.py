"""Renders findings, audits and boards; each renderer escapes contributor text for its format."""
