"""`python -m reference_harness` is the same as `geneb-harness`."""

from .cli.main import main

if __name__ == "__main__":
    main()
