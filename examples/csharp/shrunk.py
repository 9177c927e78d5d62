"""Models that `remat shrink --for c` wrote, in C# by the lines of docs/how-to/cpp.md as they stand.

    remat shrink yolov8s.onnx --for c
    PYTHONPATH=. python examples/csharp/shrunk.py DLL yolov8s.small.onnx >> examples/csharp/shrunk.jsonl

DLL: as for run.py. Rows are those of `examples/cpp/shrunk.py`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from examples.cpp.run import native_library
from examples.cpp.shrunk import Program, main
from examples.csharp.run import blocks
from remat_cli.actions.placing import write_sources

HERE = Path(__file__).parent
LIBRARY = ["-O2", "-std=c11", "-fPIC", "-shared", "-o", "libremat_places.so", "remat_places.c", "-lpthread", "-ldl"]


def compiled(library: Path, folder: Path) -> Program:
    """What runs the program: Mono finds the libraries beside it."""
    options, _, places, run, declared = blocks()
    places = places.replace('"train.disabled.remat.places"', "given[3]")
    places = places.replace('"libremat_places.so"', f'"{folder / "libremat_places.so"}"')
    text = (HERE / "Infer.cs").read_text().replace("        OPTIONS\n", options).replace("        PLACES\n", places)
    (folder / "Infer.cs").write_text(text.replace("                RUN\n", run).replace("DECLARED\n", declared))
    write_sources(folder)
    subprocess.run(["cc", *LIBRARY], cwd=folder, check=True)
    shutil.copy(library, folder)
    (folder / "libonnxruntime.so").symlink_to(native_library())
    command = ["mcs", "-langversion:latest", f"-r:{folder / library.name}", f"-out:{folder / 'Infer.exe'}"]
    subprocess.run([*command, str(folder / "Infer.cs")], check=True)
    return Program(["mono", str(folder / "Infer.exe")], "csharp")


if __name__ == "__main__":
    main(__doc__, "DLL", compiled)
