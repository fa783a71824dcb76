"""Where numbers come from, and levels that cannot be claimed."""
