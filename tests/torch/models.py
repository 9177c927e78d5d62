"""The networks of `examples/torch-compile`, small."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

PLACE = Path(__file__).parents[2] / "examples" / "torch-compile" / "models.py"
spec = spec_from_file_location("torch_compile_models", PLACE)
assert spec is not None
assert spec.loader is not None
module = module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)

MODELS = module.SMALL
