"""`python -m tests.recorded`: ask every question and compare. `--write` records the answers, `--notes` prints notes."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.recorded.asking import answered
from tests.recorded.questions import QUESTIONS

ANSWERS = Path(__file__).with_name("answers.json")


def main(flags: list[str]) -> int:
    os.environ["REMAT_RESULTS"] = "off"
    recorded = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    wanted = [flag for flag in flags if not flag.startswith("--")] or list(QUESTIONS)
    found, others = {}, 0
    for name in wanted:
        begun = time.process_time()
        with TemporaryDirectory() as folder:
            found[name], notes = answered(QUESTIONS[name], Path(folder))
        other = found[name] != recorded.get(name)
        others += other
        figures = {key: value for key, value in found[name].items() if key not in ("plans", "fields")}
        if "--notes" in flags:
            figures["notes"] = notes
        print(f"{'other' if other else 'same '} {time.process_time() - begun:5.1f} s  {name}: {figures}", flush=True)
    if "--write" in flags:
        everything = {**recorded, **found}
        lines = ",\n".join(
            f" {json.dumps(name)}: {json.dumps(everything[name])}" for name in QUESTIONS if name in everything
        )
        ANSWERS.write_text(f"{{\n{lines}\n}}\n")
    print(f"{others} of {len(wanted)} are others")
    return 1 if others and "--write" not in flags else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
