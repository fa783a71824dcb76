"""Mutation testing: small wrong changes to the code that carries the truth, which tests must find.

`make mutants` draws them with a fixed seed, runs the tests that execute each one's lines, and
writes docs/mutants.md. `CONTRIBUTING.md` says how to read it.
"""
