"""The rules, one module per rule that has logic; the others are tables in `reported.py`."""
