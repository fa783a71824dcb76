"""The state of a branch or a board, and the next command.

`read_branch` and `read_board` read a repository into a small frozen state. `contributor` and
`maintainer` each have a table of situations, of which the first that applies gives the command.

Internal: other programs call `geneb_ci.next_step`.
"""
