"""The strict session: is the file's order kept, are clones kept, what runs elsewhere, are the bits the original's?

Invariant: what is called the same was compared bit for bit, and the original against itself first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from examples.gpu.parts.models import Bench, Model
from examples.gpu.parts.steps import kernels
from profiles.cuda import PROVIDERS
from remat_cli.checking.compare import differences
from remat_cli.ingest import ingest

AS_IT_COMES = {"cudnn_conv_algo_search": "EXHAUSTIVE", "use_tf32": "1"}
EXACT = {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"}
MOST = 12  # names in a list


def order_and_bits(bench: Bench, name: str, budget: int) -> Iterator[dict[str, Any]]:
    """The original and its rewriting, with what makes kernels exact and with what they come with."""
    model = Model(bench, name)
    original, rewritten = model.graph(), model.rewritten(f"{budget}%")
    ran, first = kernels(original, bench.device, **EXACT)
    yield {"original": ran_as_written(original, ran, bench.device)}
    again, second = kernels(rewritten, bench.device, **EXACT)
    yield {"rewritten": ran_as_written(rewritten, again, bench.device)}
    yield {"exact": {"rewritten": apart(original, first, second)}}
    yield {"exact_itself": apart(original, first, kernels(original, bench.device, **EXACT)[1])}
    if bench.device == "cuda":
        usual = kernels(original, bench.device, **AS_IT_COMES)[1]
        yield {"as_it_comes_itself": apart(original, usual, kernels(original, bench.device, **AS_IT_COMES)[1])}
        yield {"as_it_comes": apart(original, usual, kernels(rewritten, bench.device, **AS_IT_COMES)[1])}
        yield {"tf32_against_exact": apart(original, first, usual)}


def ran_as_written(path: Path, ran: Sequence[dict[str, Any]], device: str) -> dict[str, Any]:
    """What ran, against what stands in the file: kernels in order, none merged, none elsewhere, no copies put in."""
    wanted = [node.name for node in ingest(path, {}).ops]
    names = [kernel["name"] for kernel in ran]
    known = set(wanted)
    own = [name for name in names if name in known]
    off = Counter(kernel["op_name"] for kernel in ran if kernel["provider"] != PROVIDERS[device])
    copies = [kernel for kernel in ran if kernel["op_name"].startswith("Memcpy")]
    moved = next((k for k, (ours, theirs) in enumerate(zip(own, wanted, strict=False)) if ours != theirs), None)
    return {
        "nodes": len(wanted),
        "kernels": len(names),
        "order_kept": own == wanted,
        "first_moved": None if moved is None else {"wanted": wanted[moved], "ran": own[moved]},
        "not_run": sorted(known - set(names))[:MOST],
        "elsewhere": dict(off),
        "copies": len(copies),
        "copied_bytes": sum(int(kernel["output_size"]) for kernel in copies),
        "arena_peak": max((int(kernel.get("mem_in_use_peak", 0)) for kernel in ran), default=0),
    }


def apart(path: Path, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> dict[str, Any]:
    """How many outputs differ, and by how much against the size of what they hold."""
    names = [output.name for output in onnx.load(path, load_external_data=False).graph.output]
    wrong = differences(names, ours, theirs)
    most = 0.0
    for one, other in zip(ours, theirs, strict=True):
        if one.dtype.kind == "f" and one.size:
            size = float(np.abs(one.astype(np.float64)).max()) or 1.0
            most = max(most, float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max()) / size)
    finite = all(np.isfinite(one).all() for one in ours if one.dtype.kind == "f")
    nothing = all(not one.any() for one in ours)
    return {
        "outputs": len(names),
        "differ": len(wrong),
        "relative": most,
        "finite": bool(finite),
        "all_zero": bool(nothing),
        "says": [f"{one.output}: {one.says}" for one in wrong[:3]],
    }
