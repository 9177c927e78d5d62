"""Where things are kept between runs. Imports nothing heavy: those who only want to know where import this."""

from __future__ import annotations

import os
from pathlib import Path


def kept(what: str) -> Path:
    """The folder of such things in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "remat" / what
