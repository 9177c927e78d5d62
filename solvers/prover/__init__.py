"""Makes certificates: solves linear programs over the rows of `solvers.proof`, and splits cases that they leave
open."""
