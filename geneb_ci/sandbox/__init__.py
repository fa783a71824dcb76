"""Runs an untrusted extractor, and accepts nothing from it but a matrix of numbers.

`README.md` in this folder has an example, and says what each level promises, what it does not, and
where each limit is; `docs/maintainer/sandbox.md` has the reasons and the measurements.

Internal: programs use `geneb_ci` itself.
"""
