"""The lines of docs/how-to/cpp.md for C#, run as they stand: the same bytes, no more than the plan states?

    PYTHONPATH=. python examples/csharp/run.py DLL torch_cnn torch_unet_convt cnn.onnx gpt2.onnx \\
        > examples/csharp/results.json

DLL: the managed Microsoft.ML.OnnxRuntime.dll, of any version up to the runtime's. The compiler is Mono's (mcs and mono
of Debian's mono-mcs and mono-runtime), the runtime the one that the Python package brings. Rows are those of
`examples/cpp/run.py`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.cpp.run import Programs, native_library, rows

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "how-to" / "cpp.md"


def blocks() -> list[str]:
    """The lines of the page, as they stand: of the session, and of a run in place."""
    return re.findall(r"```csharp\n(.*?)```", PAGE.read_text(), re.DOTALL)


def compiled(library: Path, folder: Path) -> list[str]:
    """What runs the program: Mono finds the library and the runtime beside it."""
    source, program = folder / "Train.cs", folder / "Train.exe"
    options, binding, *_ = blocks()
    program_text = (HERE / "Train.cs").read_text().replace("        OPTIONS\n", options)
    source.write_text(program_text.replace("                BINDING\n", binding))
    shutil.copy(library, folder)
    (folder / "libonnxruntime.so").symlink_to(native_library())
    command = ["mcs", "-langversion:latest", f"-r:{folder / library.name}", f"-out:{program}", str(source)]
    subprocess.run(command, check=True)
    return ["mono", str(program)]


def main() -> None:
    with TemporaryDirectory() as scratch:
        rows(sys.argv[2:], Programs(compiled(Path(sys.argv[1]), Path(scratch)), []), Path(scratch))


if __name__ == "__main__":
    main()
