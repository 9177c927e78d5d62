"""The road of the demo on a small network, by the remat that this Python has: what a wheel is tried with.

No compiler may be found meanwhile: PATH leads nowhere but to remat, and CC and CXX to nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROAD = (
    "zoo unet --batch 1 --image 32 --width 4 -o unet.onnx",
    "grad unet.onnx -o train.onnx",
    "profile train.onnx",
    "solve train.onnx --budget 80% --work-limit 100k -o train.plan.json",
    "emit train.plan.json -q",
    "verify train.plan.json",
    "show train.plan.json",
)


def main() -> None:
    environment = {**os.environ, "PATH": "", "CC": "false", "CXX": "false", "PYTHONSAFEPATH": "1"}
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"HOME": str(Path(folder, "nowhere")), "REMAT_RESULTS": "off"}
        for line in ROAD:
            print(f"$ remat {line}", flush=True)
            command = [sys.executable, "-m", "remat_cli", *line.split()]
            subprocess.run(command, cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
