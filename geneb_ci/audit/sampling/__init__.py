"""Draws: what an audit reruns, by a beacon that nobody could foresee.

Internal: programs use `geneb_ci` itself.
"""
