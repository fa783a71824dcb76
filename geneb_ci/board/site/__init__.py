"""Pages that stand alone: one for each model, task and category, read without JavaScript.

Internal: programs use `geneb_ci` itself.
"""
