"""What a pull request changes, before a byte of it is read."""
