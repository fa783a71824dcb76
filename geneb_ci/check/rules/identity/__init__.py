"""Names, addresses and sizes of models."""
