"""Rules about numbers that can exist but hardly come from a run: warnings, never errors."""
