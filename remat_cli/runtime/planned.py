"""A strict session whose every allocation lies where the plan says; otherwise it is an onnxruntime.InferenceSession.

Invariant: results are those of the strict session, whatever the places; a run that is not the planned one only takes
more memory. Such a run, and one for which no places are known, gives the places of the next.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnxruntime

from profiles import cuda
from profiles.cuda import PROVIDERS
from profiles.strict import strict_options
from profiles.system import let_go
from remat_cli.formats.weights import Weights
from remat_cli.runtime.learning import learn_places
from remat_cli.runtime.placed import MappedWeights, Missed, Placed, external, library
from remat_cli.runtime.table import PlacesTable
from solvers.placement.placed import Placement

DEVICE_UNIT_BYTES = 256  # in bytes: the alignment that CUDA's libraries expect
LESSONS = 2  # runs of one size of inputs that may change its places, so that none is placed anew for ever
MOST_SIZES = 16  # of inputs that have places; others have memory of their own

Size = tuple[tuple[str, tuple[int, ...]], ...]  # of inputs


class _Places:
    """Those of one size of inputs. `missed`: what was not as planned before its places were last found."""

    def __init__(self, table: PlacesTable | None, session: PlannedSession) -> None:
        self.lessons, self.before = 0, Missed(0, 0)
        self.session = weakref.proxy(session)
        self.take(table)

    def take(self, table: PlacesTable | None) -> None:
        self.table = table
        self.placed = Placed(table, self.session._on_device, self.session._weights)

    @property
    def missed_in_all(self) -> Missed:
        return self.before + self.placed.missed

    def learn(self, unit: int) -> None:
        """Take what the last run showed, if it was not as planned."""
        if not self.placed.seen or self.lessons >= LESSONS:
            return
        self.lessons += 1
        self.before += self.placed.missed
        seen, self.placed.seen = self.placed.seen, None
        self.take(learn_places(seen, unit))
        del seen
        let_go()


class PlannedSession(onnxruntime.InferenceSession):
    """`places`: of values, once they are known: of inputs of the size that ran last. All sizes share a block."""

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
        places = PlacesTable.of(known) if isinstance(known, Placement) else known
        self._now = _Places(None if on_device else places, self)  # there inputs are asked for too, and other workspace
        self._of: dict[Size, _Places] = {}

    @property
    def places(self) -> PlacesTable | None:
        return self._now.table

    @property
    def placement(self) -> Placement | None:
        """The places as objects, which many thousands take megabytes of."""
        return None if self.places is None else self.places.placement()

    @property
    def missed(self) -> Missed:
        """Requests that were not as planned, since the places were last found."""
        return self._now.placed.missed

    @property
    def missed_in_all(self) -> Missed:
        """Requests that were not as planned, since the session was made."""
        return sum((one.missed_in_all for one in {self._now, *self._of.values()}), Missed(0, 0))

    def _places_for(self, size: Size) -> _Places:
        """Those of the size; the first that is seen has those that were given."""
        if size not in self._of and len(self._of) < MOST_SIZES:
            self._of[size] = _Places(None, self) if self._of else self._now
        return self._of.get(size, self._now)

    @contextmanager
    def _run(self, inputs: Any = None) -> Iterator[None]:
        size = None if inputs is None else _size_of(inputs)
        self._now = places = self._now if size is None else self._places_for(size)
        placed = places.placed
        with placed.run():
            yield
        if placed is places.placed:
            places.learn(DEVICE_UNIT_BYTES if self._on_device else 1)

    def run(self, output_names: Sequence[str] | None, input_feed: Any, run_options: Any = None) -> Any:
        with self._run(input_feed):
            return super().run(output_names, input_feed, run_options)

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
        with self._run():
            super().run_with_iobinding(iobinding, run_options)

    def run_with_ort_values(
        self, output_names: Sequence[str], input_dict_ort_values: Any, run_options: Any = None
    ) -> Any:
        with self._run(input_dict_ort_values):
            return super().run_with_ort_values(output_names, input_dict_ort_values, run_options)


def _size_of(inputs: Any) -> Size | None:
    """None where an input is not an array."""
    try:
        return tuple((name, tuple(_shape(one))) for name, one in inputs.items())
    except AttributeError:
        return None


def _shape(one: Any) -> Any:
    shape = one.shape
    return shape() if callable(shape) else shape
