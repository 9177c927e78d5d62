"""ResNet-50's training step at batch 8: `remat grad` on stock onnxruntime beside PyTorch, both on the CPU.

    python examples/bench/train_step.py [--batch 8] [--image 224] [--threads 2] [--profile] [-o result.json]

Results: train_step.json (one thread) and train_step_2_threads.json. Both were taken on a machine whose two cores were
shared with other work (its load is stated), so seconds by the clock are several times what they would be alone; the
CPU seconds of one thread are the figure to compare, for PyTorch's second thread spins while it waits.

Same weights, same data, default session options but for the number of threads. PyTorch is optional: without it only
onnxruntime is timed. Runs alternate between the two, so that a change in the machine's load meets both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from remat_cli.gradient.training import Options, training_graph
from remat_cli.zoo.build import build

Step = Callable[[], float]
WARM = 3  # runs before the clock starts: the second still lays out memory anew, from the first one's pattern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="print where onnxruntime's time goes, and stop")
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()

    forward = build("resnet50", "random", batch=asked.batch, image=asked.image, seed=asked.seed)
    model = training_graph(forward, Options())
    feeds = data(model, forward, asked.seed)
    if asked.profile:
        return profile(model, feeds, asked.threads)
    steps = {"onnxruntime": onnxruntime_step(model, feeds, asked.threads)}
    try:
        from resnet50_torch import training_step

        steps["pytorch"] = training_step(feeds, asked.threads)
    except ImportError:
        print("PyTorch is not installed: timing onnxruntime only")
    result = report(steps, time_all(steps, asked.runs), asked)
    text = json.dumps(result, indent=1)
    print(text)
    if asked.output:
        asked.output.write_text(text + "\n")


def data(model: onnx.ModelProto, forward: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in forward.graph.initializer}
    batch, *image = (dim.dim_value for dim in forward.graph.input[0].type.tensor_type.shape.dim)
    feeds = {"input": random.standard_normal((batch, *image), np.float32), "labels": random.integers(0, 1000, batch)}
    return feeds | {info.name: weights[info.name] for info in model.graph.input if info.name in weights}


def options(threads: int) -> onnxruntime.SessionOptions:
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.log_severity_level = 3
    return chosen


def onnxruntime_step(model: onnx.ModelProto, feeds: dict[str, np.ndarray], threads: int) -> Step:
    session = onnxruntime.InferenceSession(model.SerializeToString(), options(threads), ["CPUExecutionProvider"])
    binding = session.io_binding()
    for info in session.get_inputs():  # running statistics have a default, and stay at it
        binding.bind_cpu_input(info.name, feeds[info.name])
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def step() -> float:
        session.run_with_iobinding(binding)
        return float(binding.get_outputs()[0].numpy())

    return step


def time_all(steps: dict[str, Step], runs: int) -> dict[str, dict[str, list[float]]]:
    """For each clock, the runs of each side. CPU time stays true where other processes compete for the cores."""
    taken = {"seconds": defaultdict(list), "CPU seconds": defaultdict(list)}
    for step in [*steps.values()] * WARM:
        step()
    for _ in range(runs):
        for name, step in steps.items():
            start, used = time.perf_counter(), time.process_time()
            step()
            taken["seconds"][name].append(time.perf_counter() - start)
            taken["CPU seconds"][name].append(time.process_time() - used)
    return taken


def report(
    steps: dict[str, Step], taken: dict[str, dict[str, list[float]]], asked: argparse.Namespace
) -> dict[str, object]:
    result: dict[str, object] = {
        "step": f"resnet50, batch {asked.batch}, {asked.image}x{asked.image}, float32, seed {asked.seed}",
        "machine": f"{processor()}, {asked.threads} threads, load {os.getloadavg()[0]:.1f}",
        "runs": asked.runs,
        "loss": {name: round(step(), 4) for name, step in steps.items()},
        "versions": {name: sys.modules[name].__version__ for name in ("onnxruntime", "torch") if name in sys.modules},
    }
    for clock, runs in taken.items():
        for kind, pick in (("median", statistics.median), ("least", min)):
            figures = {name: round(pick(times), 3) for name, times in runs.items()}
            if "pytorch" in figures:
                figures["ratio"] = round(figures["onnxruntime"] / figures["pytorch"], 3)
            result[f"{clock}, {kind}"] = figures
    return result


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def profile(model: onnx.ModelProto, feeds: dict[str, np.ndarray], threads: int) -> None:
    """The time of each op type, and the slowest nodes, of one run."""
    chosen = options(threads)
    chosen.enable_profiling = True
    session = onnxruntime.InferenceSession(model.SerializeToString(), chosen, ["CPUExecutionProvider"])
    for _ in range(WARM + 1):
        session.run(None, feeds)
    path = Path(session.end_profiling())
    events = [e for e in json.loads(path.read_text()) if e.get("cat") == "Node" and e["name"].endswith("kernel_time")]
    path.unlink()
    last = events[-len(events) // (WARM + 1) :]
    kinds: dict[str, float] = defaultdict(float)
    for event in last:
        kinds[event["args"]["op_name"] + (" (backward)" if "grad" in event["name"] else "")] += event["dur"] / 1000
    print(f"{sum(kinds.values()):9.1f} ms  in {len(last)} nodes")
    for kind, spent in sorted(kinds.items(), key=lambda item: -item[1])[:30]:
        print(f"{spent:9.1f} ms  {kind}")
    for event in sorted(last, key=lambda e: -e["dur"])[:40]:
        shapes = [next(iter(shape.values())) for shape in event["args"].get("input_type_shape", [])]
        print(f"{event['dur'] / 1000:9.1f} ms  {event['args']['op_name']}  {event['name']}  {shapes}")


if __name__ == "__main__":
    main()
