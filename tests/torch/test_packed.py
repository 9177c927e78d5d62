"""Functions that are compiled together: a compiler is called less often, and torch finds what it would have made."""

from __future__ import annotations

import copy
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._inductor import config, cpp_builder
from torch._inductor.codecache import CppPythonBindingsCodeCache
from torch._inductor.cpu_vec_isa import pick_vec_isa

from remat_cli.torch import packed
from remat_cli.torch.inductor import inductor_options
from solvers.clock import limited

FUNCTION = 'extern "C" void kernel(float* made) { made[0] = %d; }'
LIBRARY = "*.main.so"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The compilers that are called, in a cache folder of torch's that is empty at first."""
    pick_vec_isa()  # which tries the compiler
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    CppPythonBindingsCodeCache.cache_clear()
    yield counted(monkeypatch)
    CppPythonBindingsCodeCache.cache_clear()


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The compilers that are called from now on."""
    found: list[str] = []
    run = cpp_builder.run_compile_cmd

    def count(command: str, cwd: str) -> None:
        if ".hpp" not in command and ".gch" not in command:  # headers are compiled once for each machine
            found.append(command)
        run(command, cwd)

    monkeypatch.setattr(cpp_builder, "run_compile_cmd", count)
    return found


def code(*numbers: int) -> str:
    """Code as Inductor writes it, with functions that write a number."""
    return "\n".join(f"f{n} = async_compile.cpp_pybinding(['float*'], r'''{FUNCTION % n}''')" for n in numbers)


def made_by(number: int) -> float:
    """What torch's own loader gives for a function."""
    made = torch.zeros(1)
    CppPythonBindingsCodeCache.load_pybinding(["float*"], FUNCTION % number)(made)
    return made.item()


def test_each_function_is_found_by_torch_after_one_call_of_the_compiler(calls: list[str], tmp_path: Path) -> None:
    packed.pack(code(3, 5, 7))
    assert [made_by(number) for number in (5, 3, 7)] == [5, 3, 7]
    assert len(calls) == 1
    assert len(list(tmp_path.rglob(LIBRARY))) == 3
    CppPythonBindingsCodeCache.cache_clear()  # as in another process
    assert [made_by(number) for number in (7, 5, 3)] == [7, 5, 3]
    assert len(calls) == 1


def _one_of_two(both_wait: Any, folder: str, told: Any) -> None:
    """Pack the functions, load them once the other process has packed them too, and tell the calls of the compiler."""
    pick_vec_isa()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    with pytest.MonkeyPatch.context() as patch:
        found = counted(patch)
        try:
            packed.pack(code(3, 5, 7))
            both_wait.wait()
            told.put(([made_by(number) for number in (3, 5, 7)], len(found)))
        except BaseException as error:
            both_wait.abort()  # the other is not left waiting, nor is the test
            told.put(([], repr(error)))
            raise


def test_of_two_processes_that_need_the_same_functions_one_compiles(tmp_path: Path) -> None:
    spawning = multiprocessing.get_context("spawn")
    both_wait, told = spawning.Barrier(2), spawning.Queue()
    both = [spawning.Process(target=_one_of_two, args=(both_wait, str(tmp_path), told)) for _ in range(2)]
    for one in both:
        one.start()
    answers = [told.get() for _ in both]
    for one in both:
        one.join()
    assert [made for made, _ in answers] == [[3, 5, 7]] * 2
    assert sum(number for _, number in answers) == 1


@pytest.mark.slow
def test_what_is_not_compiled_together_torch_compiles_itself(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "CppBuilder", lambda **_: 1 // 0)
    packed.pack(code(3, 5))
    assert [made_by(number) for number in (5, 3)] == [5, 3]
    assert len(calls) == 2


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_a_graphs_functions_are_compiled_together(
    calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 32), nn.Dropout(0.1), nn.LayerNorm(32)]
    module, given = nn.Sequential(*layers), torch.randn(64, 32)
    stock = copy.deepcopy(module)
    options = inductor_options("75%")
    options["custom_partitioner_fn"].partitioner.clock = lambda _: limited(30, 3000)
    with config.patch({"force_disable_caches": True, "compile_threads": threads}):
        own = _gradients(module, lambda: torch.compile(module, dynamic=False, options=options), given)
        first = len(calls)
        functions = len(list(tmp_path.rglob(LIBRARY)))
        other = _gradients(stock, lambda: torch.compile(stock, dynamic=False), given)
    assert first < functions
    assert all(torch.allclose(one, its, rtol=1e-4, atol=1e-6) for one, its in zip(own, other, strict=True))


def _gradients(module: nn.Module, compiled: Callable[[], Any], given: torch.Tensor) -> list[torch.Tensor]:
    torch._dynamo.reset()
    torch.manual_seed(1)
    compiled()(given).square().sum().backward()
    return [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
