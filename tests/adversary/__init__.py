"""The best cheats that we know, run against an audit."""
