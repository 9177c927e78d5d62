"""The session that a program in C, C++ or C# makes, in Python: its requests are those of the program.

Invariant: the options here are those of `CPP`, so that a run here and a run there ask for the same memory in the same
order, with the same number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiles.device import quiet_runtime
from profiles.strict import strict_options
from remat_cli.errors import BadInput
from remat_cli.runtime.in_place import in_place
from remat_cli.runtime.placed import MISSING, Missed, library
from remat_cli.runtime.session import FATAL_LEVEL, SILENT_LEVEL, refusals_in_words
from solvers.placement.placed import Placement

CPP = """\
Ort::SessionOptions options;  // C++ cannot set the order of nodes; the rewritten file does
options.SetExecutionMode(ORT_SEQUENTIAL);
options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
options.DisableMemPattern();  // the runtime still reuses buffers, so the budget bounds live bytes
options.AddConfigEntry("session.disable_prepacking", "1");
options.AddConfigEntry("session.disable_quant_qdq", "1");"""
BOUND_IN_CPP = """\
Ort::IoBinding binding(session);
for (auto &[name, value] : inputs) binding.BindInput(name.c_str(), value);
for (auto &[output, input] : in_place) binding.BindOutput(output.c_str(), inputs.at(input));  // the new over the old
for (auto &output : others) binding.BindOutput(output.c_str(), cpu);
session.Run(Ort::RunOptions{}, binding);"""
RUNS = 3  # the first is traced, the second may be another, and the third is as planned


def c_options(threads: int = 0) -> Any:
    """`threads`: of one op; 0 means all cores."""
    ort = quiet_runtime()
    options = ort.SessionOptions()
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    options.intra_op_num_threads = threads
    options.log_severity_level = SILENT_LEVEL
    return options


def learned_places(
    model: Path, feeds: Mapping[str, Any], pairs: Mapping[str, str], for_c: bool, threads: int = 0
) -> tuple[Placement, Missed]:
    """The places of the requests of a session for C, or else of the strict one, and what of the last run was not as
    planned. `pairs`: outputs that are written over inputs."""
    if library() is None:
        raise BadInput(MISSING)
    from remat_cli.runtime.planned import PlannedSession

    options = c_options() if for_c else strict_options()
    options.log_severity_level = FATAL_LEVEL
    options.intra_op_num_threads = threads
    with refusals_in_words():
        session = PlannedSession(str(model), None, "cpu", options)
    run = in_place(session, pairs).run
    before = session.missed_in_all
    for _ in range(RUNS):
        before = session.missed_in_all
        with refusals_in_words("run the model"):
            run(None, dict(feeds))
    after = session.missed_in_all
    placement = session.placement or Placement(0, 0, ())
    return placement, Missed(after.requests - before.requests, after.bytes - before.bytes)
