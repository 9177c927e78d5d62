"""How far a plan may be from the best, as every face says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_cli.formats import planfile
from remat_cli.formats.planfile import PlanFile, Searched, Source
from remat_cli.model.proved import PlanProof, Promise
from remat_cli.saying.report import slower


@pytest.mark.parametrize(
    "bound, any_order, said",
    [
        (None, None, ""),
        (1000, 1000, "1.5% slower than the fastest plan possible"),
        (1014, 1000, "1.5% slower than the fastest plan possible, 0.099% in this order of ops"),
        (1000, None, "1.5% slower than the bound"),
        (None, 1000, "1.5% slower than the fastest plan possible"),
    ],
)
def test_what_holds_for_every_plan_comes_first(bound: int | None, any_order: int | None, said: str) -> None:
    assert slower(PlanProof(1015, bound, any_order)) == said


def test_a_plan_s_file_says_both_bounds_and_older_files_are_read(tmp_path: Path) -> None:
    source = Source(tmp_path / "m.onnx", "0")
    made = PlanFile(source, None, {}, 9, "auto", 0, Searched(1, 0), "feasible", 7.0, 9, 8, 9, 6, 0, Promise(9), ())
    path = tmp_path / "m.plan.json"
    for any_order in (None, 6.0):
        planfile.write(PlanFile(**{**_fields(made), "bound_any_order": any_order}), path)
        assert planfile.read(path).bound_any_order == any_order
    older = path.read_text().replace(' "bound_any_order": 6.0,\n', "")
    path.write_text(older)
    assert "bound_any_order" not in older
    assert planfile.read(path).proved == PlanProof(8, 7.0, None)


def _fields(plan: PlanFile) -> dict[str, object]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}
