"""The command line, one module per group of commands; no other package imports it."""
