"""The commands of `geneb-harness`."""
