"""The rehearsal of the hosted jobs: runs each job of each workflow here, as a runner would.

`make rehearse` runs it; docs/maintainer/github.md says what it covers and what it cannot.
"""
