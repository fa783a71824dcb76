"""Rules, each a pure function of a frozen context, and the runner that turns them into findings."""
