"""`python -m remat_cli` is `remat`."""

from remat_cli.main import main

main()
