"""What is compiled when remat is built: the loops of the solvers (C++), and the allocator of planned sessions (C).

Both use no more of Python than its stable ABI from 3.11 on, so that one wheel serves every version. What cannot be
built is an error: nothing is left out but the allocator, which is for Linux alone and says so where it is missing.

`python setup.py build_ext --inplace` builds them beside their sources, in some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent / "building"))
import compilers

ABI = [("Py_LIMITED_API", "0x030B0000")]
# No multiplication and addition become one, so that a seed finds the same on every processor.
GNU = ["-O3", "-g0", "-fvisibility=hidden", "-ffp-contract=off"]
FLAGS = {
    "unix": {"c++": [*GNU, "-std=c++17"], None: ["-O2", "-g0", "-std=c11", "-fvisibility=hidden"]},
    "msvc": {"c++": ["/O2", "/std:c++17", "/EHsc", "/fp:precise"], None: ["/O2"]},
}


def found(*patterns: str) -> list[str]:
    return sorted(path.as_posix() for pattern in patterns for path in Path().glob(pattern))


LOOPS = Extension(
    "solvers._loops",
    ["solvers/native/module.cpp"],
    depends=found("solvers/**/*.hpp"),
    include_dirs=["."],
    define_macros=ABI,
    py_limited_api=True,
    language="c++",
)
ALLOCATOR = Extension(
    "remat_cli.runtime._placed",
    ["remat_cli/runtime/places.c"],
    depends=found("remat_cli/runtime/*.h"),
    libraries=["pthread", "dl"],
    define_macros=[("REMAT_PYTHON", None)],
    py_limited_api=True,
)
ORACLE = Extension(  # what tests hold the solvers to; no wheel has it
    "tests.oracle._search",
    ["tests/oracle/search.cpp"],
    depends=found("solvers/native/*.hpp"),
    include_dirs=["."],
    define_macros=ABI,
    py_limited_api=True,
    language="c++",
)


class Build(build_ext):
    def finalize_options(self) -> None:
        if self.inplace or self.editable_mode:
            self.distribution.ext_modules.append(ORACLE)
        super().finalize_options()

    def run(self) -> None:
        compilers.choose()
        super().run()

    def build_extension(self, ext: Extension) -> None:
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        ext.extra_compile_args = FLAGS[kind][ext.language]
        super().build_extension(ext)


setup(
    ext_modules=[LOOPS, *([ALLOCATOR] if sys.platform == "linux" else [])],
    cmdclass={"build_ext": Build},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
