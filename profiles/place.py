"""The folders of data that is kept between runs. It imports nothing heavy."""

from __future__ import annotations

import os
from pathlib import Path


def kept(what: str) -> Path:
    """The folder of this kind of data in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "remat" / what
