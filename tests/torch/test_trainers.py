"""LoRA trained as the page on trainers says, where these libraries are installed: the same weights as in eager."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import remat_cli.torch as remat_torch

pytestmark = pytest.mark.filterwarnings("ignore")


def lora() -> Any:
    transformers, peft = pytest.importorskip("transformers"), pytest.importorskip("peft")
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, use_cache=False)
    return peft.get_peft_model(
        transformers.LlamaForCausalLM(config), peft.LoraConfig(r=4, target_modules=["q_proj"], lora_dropout=0.1)
    )


def batches() -> list[dict[str, torch.Tensor]]:
    draws = torch.Generator().manual_seed(1)
    return [{name: torch.randint(64, (16,), generator=draws) for name in ("input_ids", "labels")} for _ in range(8)]


def by_trainer(model: Any, place: Path) -> None:
    transformers = pytest.importorskip("transformers")
    arguments = transformers.TrainingArguments(
        str(place), max_steps=2, per_device_train_batch_size=4, report_to=[], use_cpu=True, save_strategy="no"
    )
    transformers.Trainer(model=model, args=arguments, train_dataset=batches()).train()


def by_accelerate(model: Any, _: Path) -> None:
    accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
    optimizer, loader = torch.optim.AdamW(model.parameters()), torch.utils.data.DataLoader(batches(), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()


def by_lightning(model: Any, place: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class Tuned(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, _: int) -> Any:
            return self.model(**batch).loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    silent = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(max_steps=2, accelerator="cpu", default_root_dir=place, **silent)
    trainer.fit(Tuned(), torch.utils.data.DataLoader(batches(), batch_size=4))


@pytest.mark.slow
@pytest.mark.parametrize(("train", "budget"), [(by_trainer, "60%"), (by_accelerate, "61%"), (by_lightning, "62%")])
def test_a_trained_adapter_is_that_of_eager_within_the_budget(train: Any, budget: str, tmp_path: Path) -> None:
    found: list[nn.Module] = []
    for compiled in (False, True):
        model = lora()
        if compiled:
            model.compile(backend="remat", options={"budget": budget, "time_limit": 1.0})
        torch.manual_seed(2)
        train(model, tmp_path)
        found.append(model)
    graphs = remat_torch.report(found[1]).graphs
    assert graphs
    assert all(graph.predicted <= graph.budget < graph.before for graph in graphs), graphs
    for own, other in zip(*(model.parameters() for model in found), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)
