"""The memory that a device can still give, for `budget="fit"`.

Invariant: it knows nothing of plans. Memory that this process holds already does not count as free.
"""

from __future__ import annotations

from pathlib import Path

import torch

MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
USABLE_SHARE = 0.95  # share of the free memory: allocators lose some to gaps between blocks


def usable_bytes(device: torch.device) -> int:
    """The bytes that tensors can take besides those alive. Raises ValueError where a device does not report them."""
    return int(USABLE_SHARE * _free(device))


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        gaps = torch.cuda.memory_stats(device).get("inactive_split_bytes.all.current", 0)  # beside what is alive
        return int(torch.cuda.mem_get_info(device)[0]) + unused - gaps
    if device.type == "cpu" and MEMINFO.is_file():
        return min(_free_on_machine(), _free_in_group())
    raise ValueError(f"the free memory of a '{device.type}' device is not known here: write a budget such as '12GB'")


def _free_on_machine() -> int:
    lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines() if ":" in line)
    return int(lines["MemAvailable"].split()[0]) * 1024


def _free_in_group() -> int:
    """The bytes that this process's control group, such as a container's, still allows."""
    try:
        most = (GROUP / "memory.max").read_text().strip()
        held = int((GROUP / "memory.current").read_text())
        dropped = dict(line.split() for line in (GROUP / "memory.stat").read_text().splitlines())
        return 2**62 if most == "max" else int(most) - held + int(dropped.get("inactive_file", 0))
    except (OSError, ValueError):
        return 2**62
