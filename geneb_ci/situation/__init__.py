"""Where a branch or a board stands, and the one command that comes next.

Reading and deciding are apart: `read_branch` and `read_board` read a repository into a small frozen
state, `contributor` and `maintainer` have a table of situations each, of which the first decides.

Internal: other programs call `geneb_ci.next_step`.
"""
