"""Pages that stand alone: one for each model, task and category, read without JavaScript."""
