"""Run the README's five commands and put what they print into the README.

Usage: python examples/demo/record.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
COMMANDS = (
    "remat zoo unet --batch 2 --image 96 --width 8 -o unet.onnx",
    "remat grad unet.onnx -o train.onnx -q",
    "remat profile train.onnx -q",
    "remat solve train.onnx --budget 70% -o train.plan.json",
    "remat verify train.plan.json",
)
BLOCK = re.compile(r"(<!-- output: .*? -->\n).*?(<!-- end of output -->)", re.DOTALL)


def printed(command: str, folder: str, environment: dict[str, str]) -> str:
    asked = [sys.executable, "-m", "remat_cli", *command.split()[1:]]
    ran = subprocess.run(asked, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return f"$ {command}\n{ran.stdout}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "PYTHONPATH": str(README.parent)}
        said = "".join(printed(command, folder, environment) for command in COMMANDS)
    block = f"```console\n{said.rstrip()}\n```\n"
    README.write_text(BLOCK.sub(lambda found: found[1] + block + found[2], README.read_text()))


if __name__ == "__main__":
    main()
