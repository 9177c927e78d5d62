"""What holds where nobody says otherwise, in one table: commands, programs and manifests take it from here.

Invariant: each is in words, as the command reads them, so that its help shows what holds.
"""

from __future__ import annotations

BUDGETS = "/8"  # of a curve: so many, from the least that suffices to what the model holds
GAP = "0.1%"  # as close to the bound as that is near enough
SLOWER = "10%"  # of the time of the model as it is, for `shrink`

# The time for all of it.
SOLVE_TIME = "60s"
SWEEP_TIME = "90s"
LARGEST_TIME = "10m"
SHRINK_TIME = "2m"
PROFILE_TIME = "45s"
