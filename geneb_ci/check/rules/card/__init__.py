"""The model card beside the submission."""
