"""Names, links and sizes of models."""
