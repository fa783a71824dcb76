"""Lets `python -m reference_harness` do what `geneb-harness` does."""

from .cli import main

if __name__ == "__main__":
    main()
