"""A strict session whose every allocation lies where the plan says; otherwise it is an onnxruntime.InferenceSession.

Invariant: results are those of the strict session, whatever the places; a run that is not the planned one only takes
more memory. Such a run, and one for which no places are known, gives the places of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnxruntime

from profiles import cuda
from profiles.strict import strict_options
from remat_cli.formats.weights import Weights
from remat_cli.runtime.learning import learn_places
from remat_cli.runtime.letting_go import let_go
from remat_cli.runtime.placed import Missed, Placed, external, library
from remat_cli.runtime.providers import PROVIDERS
from remat_cli.runtime.table import PlacesTable
from remat_cli.runtime.weights import MappedWeights
from solvers.placement.largest import Placement

DEVICE_UNIT_BYTES = 256  # in bytes: the alignment that CUDA's libraries expect
LESSONS = 2  # runs that may change the places, so that a model whose sizes change is not placed anew for ever


class PlannedSession(onnxruntime.InferenceSession):
    """`places`: of values, once they are known."""

    def __init__(
        self,
        model: str | bytes,
        known: PlacesTable | Placement | None = None,
        device: str = "cpu",
        options: Any = None,
        weights: Weights | None = None,
    ) -> None:
        options = options or strict_options()
        options.register_custom_ops_library(str(library()))
        on_device = device != "cpu"
        if not on_device:
            options.add_session_config_entry("session.use_env_allocators", "1")
        self._weights = None if weights is None or on_device else MappedWeights(weights)
        if self._weights is not None:
            self._weights.add_to(options)
        cuda.ready(PROVIDERS[device], options)
        provider = cuda.with_options(PROVIDERS[device], **(external() if on_device else {}))
        super().__init__(model, options, providers=[provider], **cuda.NO_FALLBACK)
        cuda.made_there(self, PROVIDERS[device])
        self._on_device = on_device
        self._lessons = 0
        self._before = Missed(0, 0)
        places = PlacesTable.of(known) if isinstance(known, Placement) else known
        self._take(None if on_device else places)  # there inputs are asked for too, and other workspace

    def _take(self, places: PlacesTable | None) -> None:
        self.places = places
        self._placed = Placed(places, self._on_device, self._weights)

    @property
    def placement(self) -> Placement | None:
        """The places as objects, which many thousands take megabytes of."""
        return None if self.places is None else self.places.placement()

    @property
    def missed(self) -> Missed:
        """Requests that were not as planned, since the places were last found."""
        return self._placed.missed

    @property
    def missed_in_all(self) -> Missed:
        """Requests that were not as planned, since the session was made."""
        return self._before + self.missed

    @contextmanager
    def _run(self) -> Iterator[None]:
        placed = self._placed
        with placed.run():
            yield
        if placed.seen and placed is self._placed and self._lessons < LESSONS:
            self._lessons += 1
            self._before += placed.missed
            seen, placed.seen = placed.seen, None
            self._take(learn_places(seen, DEVICE_UNIT_BYTES if self._on_device else 1))
            del seen
            let_go()

    def run(self, output_names: Sequence[str] | None, input_feed: Any, run_options: Any = None) -> Any:
        with self._run():
            return super().run(output_names, input_feed, run_options)

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
        with self._run():
            super().run_with_iobinding(iobinding, run_options)

    def run_with_ort_values(
        self, output_names: Sequence[str], input_dict_ort_values: Any, run_options: Any = None
    ) -> Any:
        with self._run():
            return super().run_with_ort_values(output_names, input_dict_ort_values, run_options)
