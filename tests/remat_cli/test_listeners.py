"""Who is called only to hear of something was handed down by the room above, and by none above that: what long work
says of how far it is goes into events."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ABOVE = ("commands", "batch", "api", "actions", "torch")  # what users call, and what is done: a step apart
OWN = {
    "gradient/differentiate.py",  # within its room
    "results/memory.py",  # from who asks, of faults of the store
    "results/store.py",
    "saying/progress.py",  # gives one to who asks
    "events.py",
}


def listeners(path: Path) -> Iterator[str]:
    """The types of functions of something that give nothing."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Subscript)
            and ast.unparse(node.value) == "Callable"
            and isinstance(node.slice, ast.Tuple)
        ):
            takes, gives = map(ast.unparse, node.slice.elts)
            if takes != "[]" and gives in ("None", "object"):
                yield ast.unparse(node)


def test_rooms_below_what_is_done_call_nobody_to_tell() -> None:
    own = {path: path.relative_to(ROOT / "remat_cli") for path in (ROOT / "remat_cli").rglob("*.py")}
    below = [path for path, name in own.items() if name.parts[0] not in ABOVE]
    found = {str(own[path]) for path in below if list(listeners(path))}
    assert found == OWN
    assert not [path for path in (ROOT / "profiles").rglob("*.py") if list(listeners(path))]
