"""torch.compile under a memory budget that holds: `import remat_cli.torch`, with `pip install 'remat[torch]'`.

Invariant: nothing else of the project imports this package, and nothing else of the project needs torch.
"""

from __future__ import annotations

from remat_cli.torch.backend import backend as backend
from remat_cli.torch.inductor import partitioner as partitioner
from remat_cli.torch.partition import RematWarning as RematWarning
from remat_cli.torch.partition import partition_fn as partition_fn
from remat_cli.torch.report import report as report
from remat_cli.torch.report import save_joint as save_joint
