"""Reruns: the submission's code in the sandbox, scored by the harness outside it.

Internal: programs use `geneb_ci` itself.
"""
