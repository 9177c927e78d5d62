"""One plan on all ranks: in threads that stand for ranks, and in processes with DDP and FSDP2."""

from __future__ import annotations

import gc
import itertools
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed, multiprocessing, nn

import remat_cli.torch as remat_torch
from remat_cli.torch import ranks
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.beside import living
from remat_cli.torch.metering import Meter
from remat_cli.torch.ranks import compare, on_one_rank
from remat_cli.torch.wrapped import bucket_bytes
from remat_cli.units import show_bytes
from tests.torch.allocator import allocated, allocated_in_all_threads, counting
from tests.torch.leaving import leave
from tests.torch.steps import backend, said


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = distributed.HashStore()
    monkeypatch.setattr(ranks, "meeting_place", lambda: found)
    return found


@pytest.mark.usefixtures("store")
def test_one_rank_searches_and_all_have_its_answer() -> None:
    count, found = itertools.count(), []
    threads = [
        threading.Thread(target=lambda: found.append(on_one_rank("graph", 1, lambda: [next(count), 7])))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[0, 7]] * 4


@pytest.mark.usefixtures("store")
def test_where_the_rank_that_searches_fails_the_others_search() -> None:
    def fail() -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        on_one_rank("graph", 1, fail)
    assert on_one_rank("graph", 1, lambda: 3) == 3


def test_a_rank_that_never_answers_is_not_waited_for(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "PATIENCE_SECONDS", 0.01)
    store.add("remat/graph/asked", 1)  # and then it is gone
    with pytest.warns(remat_torch.RematWarning, match="has not answered"):
        assert on_one_rank("graph", 0, lambda: 5) == 5


@pytest.mark.usefixtures("store")
def test_plans_that_differ_are_found_by_their_digests() -> None:
    assert compare("graph", "a")
    assert compare("graph", "a")
    assert not compare("graph", "b")
    assert compare("another", "b")


def test_ranks_with_collectives_in_different_plans_are_told_apart(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here another rank has another plan: without collectives a warning says so, with them an error."""
    monkeypatch.setattr("remat_cli.torch.partition.compare", lambda *_: False)
    run = torch.compile(lambda x: x.sin().sum(), backend=backend("100%"))
    with pytest.warns(remat_torch.RematWarning, match="another rank has another plan"):
        run(torch.randn(8, requires_grad=True)).backward()
    torch._dynamo.reset()
    monkeypatch.setattr("remat_cli.torch.partition.is_collective", lambda _: True)
    drop = torch.compile(lambda x: nn.functional.dropout(x).sum(), backend=backend("100%"))
    with pytest.raises(RuntimeError, match=r"RanksDiffer.*in which there are collectives"):
        drop(torch.randn(8, requires_grad=True))


@pytest.mark.usefixtures("store", "alone")
def test_ranks_that_meet_in_other_collectives_are_told_before_they_wait() -> None:
    """One process stands for three ranks, one after another: the third would wait for ever."""
    from torch.distributed import _functional_collectives as together

    def run(times: int, share: str) -> None:
        def summed(x: torch.Tensor) -> torch.Tensor:
            for _ in range(times):
                x = together.all_reduce(x.sin(), "sum", distributed.group.WORLD)
            return x.sum()

        torch._dynamo.reset()
        ranks.met.clear()
        torch.compile(summed, backend=backend(share), dynamic=False)(torch.randn(64, requires_grad=True)).backward()

    run(1, "100%")
    run(1, "90%")  # ranks may have other budgets
    with pytest.raises(RuntimeError, match=r"RanksDiffer.*meets in other collectives"):
        run(2, "100%")


class Block(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm, self.wide, self.back = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.back(nn.functional.gelu(self.wide(self.norm(x))))


class Dropping(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(super().forward(x), 0.1)


class Net(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).square().mean()


def network() -> Net:
    torch.manual_seed(0)
    return Net(*(Block() for _ in range(3)))


@pytest.fixture
def alone() -> Any:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def shards(
    budget: str, kept: bool = False, witness: Callable[[Callable[[], Any]], int] = allocated, steps: int = 1
) -> tuple[int, int, list[str]]:
    """What a rank holds from its fourth step on by the allocator and by the meter, and what was said. `kept`: gathered
    weights stay for the backward pass."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, x, asked = Net(*(Block(128) for _ in range(3))), torch.randn(1024, 128), backend(budget)
    for block in module:
        block.compile(backend=asked, dynamic=False)
        distributed.fsdp.fully_shard(block, reshard_after_forward=not kept)
    distributed.fsdp.fully_shard(module)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", remat_torch.RematWarning)
        for _ in range(3):  # where it is over, plans are made anew, twice
            module.zero_grad()
            module(x).backward()
    held, most = sum(p.to_local().nbytes for p in module.parameters()) + x.nbytes, 0
    for _ in range(steps):
        module.zero_grad()
        most = max(most, witness(lambda: module(x).backward()))
    return held + most, asked.step.meter.peak, said(heard)


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_what_fully_shard_holds_is_in_the_budget_or_told() -> None:
    """Shards, gathered weights and reduced gradients are a third of this step, by the allocator as by the meter."""
    whole, metered, told = shards("1GB")
    assert not told
    assert metered == pytest.approx(whole, rel=0.04)  # the loss is computed in eager
    for share in (75, 30):
        limit = whole * share // 100
        peak, metered, told = shards(str(limit))
        assert metered == pytest.approx(peak, rel=0.04)
        assert "what fully_shard holds" in told[-1]
        assert peak <= 1.02 * limit or "no less is known" in told[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_share_is_of_what_fully_shard_and_the_graphs_hold_as_written() -> None:
    """Not all that is given is there at once: a share of the sum would be more than the step ever holds."""
    whole, _, _ = shards("1GB")
    for share in (95, 75):
        peak, _, told = shards(f"{share}%")
        assert peak <= 1.001 * whole * share / 100
        assert not told or "next step compiles" in told[-1]
    _, _, told = shards("30%")
    assert show_bytes(whole * 30 // 100) in told[0]
    assert show_bytes(whole * 30 // 100) in told[-1]
    assert "no less is known" in told[-1]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("way", ["in place", "whole"])
@pytest.mark.parametrize("kind", ["torch's layers", "own blocks", "torch's layers, their forward"])
def test_a_layer_of_torch_that_fully_shard_divides_is_told(kind: str, way: str) -> None:
    """Its hooks are not compiled, and torch.compile does not begin again in code of torch."""

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (
                (Block(), Block()) if kind == "own blocks" else (nn.TransformerEncoderLayer(32, 2, 32), nn.GELU())
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x).sin()).square().mean()

    gc.collect()  # modules of other tests are there until then
    module, asked = Pair(), backend("1GB")
    if "forward" in kind:
        module.first.forward = torch.compile(module.first.forward, backend=asked, dynamic=False)
    elif way == "in place":
        module.first.compile(backend=asked, dynamic=False)
    distributed.fsdp.fully_shard(module.first)
    if way == "whole":
        module.compile(backend=asked, dynamic=False)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", remat_torch.RematWarning)
        module(torch.randn(4, 8, 32)).backward()
        left = remat_torch.report(asked).left
    assert dict.fromkeys(left) == dict.fromkeys(text for text in said(heard) if "leaves" in text)
    assert len(left) == (kind == "torch's layers")
    assert all("leaves TransformerEncoderLayer to eager, for" in text for text in left)
    assert bool(asked.plans) == (kind != "torch's layers" or way == "whole")


@pytest.mark.usefixtures("alone")
def test_layers_of_torch_beside_blocks_of_ones_own_are_told() -> None:
    """Where what is divided holds both, the blocks are compiled, and the layers between them are not."""
    gc.collect()
    blocks, asked = [nn.Sequential(Block(), nn.Dropout(0.1), nn.Identity()) for _ in range(2)], backend("1GB")
    torch._dynamo.reset()  # the backend hears of the blocks when it compiles the first of them
    for block in blocks:
        block.compile(backend=asked, dynamic=False)
        distributed.fsdp.fully_shard(block)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", remat_torch.RematWarning)
        for _ in range(2):
            blocks[1](blocks[0](torch.randn(64, 32))).sum().backward()
    text, *others = said(heard)
    assert "leaves Dropout to eager" in text
    assert all("ran in eager" in other for other in others)  # its masks
    assert asked.plans


def test_buckets_of_gradients_are_part_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    module = network()

    class Wrapper:
        def __init__(self) -> None:
            self.module = module

    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(nn.parallel, "DistributedDataParallel", Wrapper)
    wrapper, given = Wrapper(), [*module.parameters(), torch.ones(3)]
    buckets = sum(p.nbytes for p in wrapper.module.parameters())
    assert bucket_bytes([wrapper], Meter(given)) == buckets
    allowance = allowance_of("1MB")
    allowance.look_ahead(given[:3])  # one graph's, and another's
    allowance.look_ahead(given[2:])
    assert allowance.bytes(0, 0) == 1_000_000 - buckets


@pytest.mark.usefixtures("alone")
def test_a_graph_of_each_bucket_leaves_room_for_all_buckets() -> None:
    """torch compiles each with tensors that stand for the weights: the first run has the weights. The wrapper's own
    breaks of the graph are nothing to be told of."""
    gc.collect()  # modules of other tests are there until then
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = Net(*(Block(192) for _ in range(2)))
    asked = backend("1GB")
    wrapped = nn.parallel.DistributedDataParallel(module, bucket_cap_mb=1.5)  # the first is of 1 MB at least
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", remat_torch.RematWarning)
        torch.compile(wrapped, backend=asked, dynamic=False)(torch.randn(4, 192)).backward()
    assert len(asked.plans) > 1
    assert asked.step.allowance.buckets == sum(p.nbytes for p in module.parameters())
    assert not said(heard)


def test_what_is_gone_does_not_stop_a_look_at_what_is_there() -> None:
    """A proxy of an object that is no more raises an error where it is asked for its class."""
    block = Block()
    proxy = weakref.proxy(block)
    del block
    assert not [one for one in living(torch.optim.Optimizer) if one is proxy]


DDP = {
    "DDP around": {},
    "DDP, a static graph": {"static_graph": True, "gradient_as_bucket_view": True},
    "DDP, a weight that nobody uses": {"find_unused_parameters": True},
}
BLOCKS = {"FSDP2 of blocks": True, "FSDP2 of blocks, kept": False, "FSDP2 of blocks, in pairs": 2}


def trained(way: str) -> nn.Module:
    module = network()
    if "nobody" in way:
        module.register_parameter("unused", nn.Parameter(torch.ones(3)))
    return module


def rank(number: int, world: int, way: str, place: str) -> None:
    """One process: three steps, and what it found in a file."""
    torch.set_num_threads(1)
    store = distributed.FileStore(f"{place}/store", world)
    distributed.init_process_group("gloo", store=store, rank=number, world_size=world)
    module, asked = trained(way), remat_torch.backend("60%", time_limit=1)  # by the clock: searches would differ
    torch.manual_seed(1)
    x = torch.randn(world, 64, 32)[number]
    run: Any = module
    if way in DDP:
        run = nn.parallel.DistributedDataParallel(torch.compile(module, backend=asked, dynamic=False), **DDP[way])
    else:
        if way in BLOCKS:
            for block in module:
                block.compile(backend=asked, dynamic=False)
                distributed.fsdp.fully_shard(block, reshard_after_forward=BLOCKS[way])
        else:
            run = torch.compile(module, backend=asked, dynamic=False)
        distributed.fsdp.fully_shard(module)
    with warnings.catch_warnings(record=True):
        for _ in range(3):
            module.zero_grad()
            run(x).backward()
    whole = [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad for p in module.parameters()]
    orders = [plan.found.order for plan in asked.plans if plan.found is not None]
    torch.save((whole, orders), f"{place}/{number}")
    leave(store, number, world)


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("way", [*DDP, *BLOCKS, "FSDP2"])
def test_ranks_have_one_plan_and_the_gradients_of_a_single_process(way: str, world: int, tmp_path: Path) -> None:
    multiprocessing.spawn(rank, (world, way, str(tmp_path)), nprocs=world)
    found = [torch.load(tmp_path / str(number), weights_only=False) for number in range(world)]
    module = trained(way)
    torch.manual_seed(1)
    sum(module(x) / world for x in torch.randn(world, 64, 32)).backward()  # type: ignore[union-attr]
    for gradients, orders in found:
        assert orders
        assert orders == found[0][1]
        for own, other in zip(gradients, module.parameters(), strict=True):
            torch.testing.assert_close(own, other.grad, rtol=1e-5, atol=1e-7)


def rank_with_shares(number: int, world: int, kept: bool, place: str) -> None:
    torch.set_num_threads(1)
    store = distributed.FileStore(f"{place}/store", world)
    distributed.init_process_group("gloo", store=store, rank=number, world_size=world)
    budgets = ("1GB", "75%", "60%", "30%")
    torch.save([shards(each, kept, allocated_in_all_threads, 4) for each in budgets], f"{place}/{number}")
    leave(store, number, world)


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("kept", [False, True])
def test_each_rank_keeps_to_its_share(kept: bool, world: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each step. A thread of gloo frees its copy of a block's gradients when its turn comes, which the meter cannot
    see: on a busy machine such a copy is there beside the peak."""
    copy = sum(p.nbytes for p in Block(128).parameters())
    monkeypatch.setenv("LD_PRELOAD", counting(tmp_path))
    multiprocessing.spawn(rank_with_shares, (world, kept, str(tmp_path)), nprocs=world)
    for number in range(world):
        (whole, _, _), *found = torch.load(tmp_path / str(number))
        for share, (peak, metered, told) in zip((75, 60, 30), found, strict=True):
            assert peak <= 1.02 * metered + copy
            assert metered <= 1.02 * whole * share / 100 or (show_bytes(metered) in told[-1] and "no less" in told[-1])


def half(number: int, world: int, place: str) -> None:
    """One process: blocks with dropout that compute in bfloat16, by torch's own compilation and by ours."""
    torch.set_num_threads(1)
    store = distributed.FileStore(f"{place}/store", world)
    distributed.init_process_group("gloo", store=store, rank=number, world_size=world)
    policy = distributed.fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    found = []
    for asked in ("aot_eager", backend("1GB"), backend("60%")):
        torch._dynamo.reset()
        torch.manual_seed(0)
        module = Net(*(Dropping(64) for _ in range(3)))
        for block in module:
            block.compile(backend=asked, dynamic=False)
            distributed.fsdp.fully_shard(block, mp_policy=policy)
        distributed.fsdp.fully_shard(module, mp_policy=policy)
        x = torch.randn(world, 512, 64)[number]

        def train(module: Net = module, x: torch.Tensor = x) -> None:
            module.zero_grad()
            torch.manual_seed(number)
            module(x).backward()

        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", remat_torch.RematWarning)
            for _ in range(3):
                train()
        module.zero_grad()
        held = sum(p.to_local().nbytes for p in module.parameters())
        peaks = []
        for _ in range(4):
            module.zero_grad()
            peaks.append(held + allocated_in_all_threads(train))
        budget = asked.step.divided[0] if isinstance(asked, Backend) else 0
        found.append(([p.grad.full_tensor() for p in module.parameters()], min(peaks), budget, said(heard)))
    torch.save(found, f"{place}/{number}")
    leave(store, number, world)


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 4])
def test_ranks_in_bfloat16_keep_to_their_share_with_the_bits_of_torchs_own_compilation(
    world: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input as it was before it is cast is in no figure. In the best of four steps: in others a thread of gloo may
    hold what it was given for longer."""
    monkeypatch.setenv("LD_PRELOAD", counting(tmp_path))
    multiprocessing.spawn(half, (world, str(tmp_path)), nprocs=world)
    for number in range(world):
        own, whole, within = torch.load(tmp_path / str(number))
        for gradients, *_ in (whole, within):
            assert all(map(torch.equal, gradients, own[0]))
        _, peak, budget, heard = within
        assert 0 < peak <= 1.02 * budget
        assert all("next step compiles them again" in text for text in heard)
