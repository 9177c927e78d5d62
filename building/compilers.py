"""Which C and C++ compilers build remat: the machine's, or else zig's, which is a package that pip can install.

On Windows setuptools looks for Microsoft's by itself.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from importlib.util import find_spec

ZIG = "ziglang>=0.13"
NOTHING = (
    "remat: there is no C++ compiler to build its loops with: install one (Debian and Ubuntu: apt install g++; macOS:"
    " xcode-select --install), or install remat from a wheel"
)


def needed() -> list[str]:
    """What a build has to ask the registry for."""
    return [] if _machine_has_them() else [ZIG]


def choose() -> None:
    """Set the variables by which setuptools finds compilers, if the machine has none; end where nobody has one."""
    if _machine_has_them():
        return
    if find_spec("ziglang") is None:
        raise SystemExit(NOTHING)
    zig = f"{shlex.quote(sys.executable)} -m ziglang"
    compilers = {"CC": f"{zig} cc", "CXX": f"{zig} c++", "LDSHARED": f"{zig} cc", "LDCXXSHARED": f"{zig} c++"}
    link = " -bundle -undefined dynamic_lookup" if sys.platform == "darwin" else " -shared -s"
    for name, command in compilers.items():
        # for any processor of the kind, not for this one alone
        os.environ[name] = f"{command} -mcpu=baseline" + (link if name.startswith("LD") else "")
    os.environ["AR"] = f"{zig} ar"


def _machine_has_them() -> bool:
    return sys.platform == "win32" or all(_works(name) for name in ("CC", "CXX"))


def _works(name: str) -> bool:
    command = shlex.split(os.environ.get(name) or sysconfig.get_config_var(name) or "")
    if not command:
        return False
    try:
        return subprocess.run([*command, "--version"], capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False
