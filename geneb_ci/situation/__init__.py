"""The state of a branch or a board, and the next command.

`read_branch` and `read_board` return the state of a repository. `contributor` and
`maintainer` each have a table of situations, of which the first that applies gives the command.

Internal: other programs call `geneb_ci.next_step`.
"""
