"""`python -m remat_cli` is `remat`."""

from remat_cli.start import main

main()
