"""The rehearsal of the hosted jobs: each job of each workflow, run here as a runner would.

`make rehearse` runs it; docs/maintainer/github.md says what it holds and what it cannot.
"""
