"""Rules about possible but improbable numbers: warnings, never errors."""
