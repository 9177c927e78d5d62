"""Making certificates: linear programs over the rows of `solvers.proof`, and the cases that their answers leave."""
