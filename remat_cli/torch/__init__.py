"""torch.compile under a memory budget that holds: `import remat_cli.torch`, with `pip install 'remat[torch]'`.

Invariant: nothing else of the project imports this package, and nothing else of the project needs torch. A torch that
lacks what is needed here is stepped aside for, with a warning.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from remat_cli.errors import RematWarning as RematWarning

try:
    import remat_cli.torch.private  # noqa: F401  whatever it takes is there or not
except (ImportError, AttributeError) as error:
    if getattr(error, "name", None) == "torch":  # it is not there at all
        raise
    LACKS = str(error)
else:
    LACKS = ""

if TYPE_CHECKING or not LACKS:
    from remat_cli.torch.backend import backend as backend
    from remat_cli.torch.inductor import inductor_options as inductor_options
    from remat_cli.torch.inductor import partitioner as partitioner
    from remat_cli.torch.named import remat as remat
    from remat_cli.torch.partition import partition_fn as partition_fn
    from remat_cli.torch.report import report as report
    from remat_cli.torch.report import save_joint as save_joint
else:
    from remat_cli.torch.aside import Aside

    _aside = Aside(LACKS)
    backend, partitioner, inductor_options = _aside.backend, _aside.partitioner, _aside.inductor_options
    remat = partial(_aside.remat)  # torch notes things on what it registers
    partition_fn = report = save_joint = _aside.refuse
