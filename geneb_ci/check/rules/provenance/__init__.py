"""Where scores come from, and trust levels that cannot be claimed."""
