"""Where tasks run: processes of this machine. A cluster engine is not part of this version."""
