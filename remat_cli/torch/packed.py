"""Functions of C++ that a graph's code has, compiled together: most of what one takes alone is the compiler's start.

Invariant: each lies where torch looks for what it compiled, alone or with others, in this process and in later ones.
What is not there, torch compiles itself. Of several processes that need the same functions at once, as ranks do, one
compiles: it holds the lock that torch has for each function.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from remat_cli.torch.private import LOCK_SECONDS, CppBuilder, FileLock, cpp_functions, inductor_config

MOST = 16  # functions that are compiled together; as many again may be compiled meanwhile
INCLUDED = re.compile(r"^\s*#include .*$", re.MULTILINE)

# Each function comes with a module of its own. Which of them is asked for, the name of its file says.
BEGIN = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cstring>
"""
FUNCTION = """
namespace remat_{number} {{
#define kernel remat_kernel_{number}
#define PyInit_kernel remat_begin_{number}
#include "{source}"
#undef kernel
#undef PyInit_kernel
}}
"""
END = """
static PyObject* remat_create(PyObject* spec, PyModuleDef*) {{
    PyObject* origin = PyObject_GetAttrString(spec, "origin");
    const char* path = origin ? PyUnicode_AsUTF8(origin) : nullptr;
    PyObject* made = nullptr;
    if (path == nullptr) {{}}
    {choices}
    else PyErr_SetString(PyExc_ImportError, "no function of this name was compiled here");
    Py_XDECREF(origin);
    return made;
}}
static PyModuleDef_Slot remat_slots[] = {{{{Py_mod_create, (void*)remat_create}}, {{0, nullptr}}}};
static PyModuleDef remat_module = {{PyModuleDef_HEAD_INIT, "kernel", nullptr, 0, nullptr, remat_slots}};
PyMODINIT_FUNC PyInit_kernel(void) {{ return PyModuleDef_Init(&remat_module); }}
"""
CHOICE = 'else if (std::strstr(path, "{name}")) made = remat_{number}::remat_begin_{number}();'


class _Pack:
    """What torch would compile, one by one, of a graph's code. It waits for this as for a worker of its own."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, Any]] = []  # the lock of each function, and what compiles it

    def submit(self, work: Any) -> _Pack:
        lock, (builder,) = work.args
        self.waiting.append((lock, builder))
        return self

    def result(self) -> None:
        """Compile them all, at the first call."""
        alike: dict[str, list[tuple[str, Any]]] = {}
        for lock, builder in self.waiting:
            alike.setdefault(_flags(builder), []).append((lock, builder))
        self.waiting = []
        packs = [some[first : first + MOST] for some in alike.values() for first in range(0, len(some), MOST)]
        with suppress(Exception), ThreadPoolExecutor(max(1, inductor_config.compile_threads)) as pool:
            list(pool.map(_build_once, (pack for pack in packs if len(pack) > 1)))


def pack(source: str) -> None:
    """Have the functions that the code would compile, each by itself, compiled together when the first is needed.

    Where that fails, torch compiles them one by one, and says why if it fails as well.
    """
    if os.name != "posix":
        return
    waiting = _Pack()
    with suppress(Exception):
        for types, function in _functions(source):
            cpp_functions.load_pybinding_async(types, function, submit_fn=waiting.submit)


def _functions(source: str) -> Iterator[Sequence[Any]]:
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "cpp_pybinding":
            yield [ast.literal_eval(argument) for argument in call.args]


def _target(builder: Any) -> Path:
    return Path(builder.get_target_file_path())


def _flags(builder: Any) -> str:
    """How the compiler is called, but for the names of files."""
    target = _target(builder)
    return str(builder.get_command_line()).replace(str(target.with_suffix("")), "")


def _build_once(pack: Sequence[tuple[str, Any]]) -> None:
    """Compile together what no other process has compiled by now. Locks are taken in one order: none waits for ever."""
    with ExitStack() as locks:
        for lock in sorted(path for path, _ in pack):
            locks.enter_context(FileLock(lock, timeout=LOCK_SECONDS))
        if missing := [builder for _, builder in pack if not _target(builder).exists()]:
            _build(missing)


def _build(builders: Sequence[Any]) -> None:
    """Compile these together."""
    targets = [_target(builder) for builder in builders]
    with tempfile.TemporaryDirectory(dir=targets[0].parent) as folder:
        source = Path(folder, "pack.cpp")
        source.write_text(_together([target.with_suffix(".cpp") for target in targets]), encoding="utf-8")
        whole = CppBuilder(name="pack", sources=str(source), BuildOption=builders[0]._build_option, output_dir=folder)
        whole.build()
        for target in targets:
            _place(_target(whole), target)


def _together(sources: Sequence[Path]) -> str:
    """One source of several. What they include is included first, outside of the names that are each one's own."""
    texts = [source.read_text(encoding="utf-8") for source in sources]
    included = dict.fromkeys(line for text in texts for line in INCLUDED.findall(text))
    functions = [FUNCTION.format(number=number, source=source) for number, source in enumerate(sources)]
    choices = [CHOICE.format(number=number, name=source.stem) for number, source in enumerate(sources)]
    return "\n".join([BEGIN, *included, *functions, END.format(choices="\n    ".join(choices))])


def _place(made: Path, target: Path) -> None:
    """Have it at the target as well, whole from the first moment on; another process may have been faster."""
    own = made.with_name(target.name)
    try:
        os.link(made, own)
    except OSError:  # a file system without links
        shutil.copyfile(made, own)
    own.replace(target)
