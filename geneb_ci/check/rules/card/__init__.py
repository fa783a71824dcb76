"""The model card of the submission."""
