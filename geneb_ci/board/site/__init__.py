"""Pages without JavaScript: one for each model, task and category.

Internal: programs use `geneb_ci` itself.
"""
