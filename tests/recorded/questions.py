"""The questions: every kind of session, every kind of outcome, with all that a question can say.

Invariant: each is limited in work, never in time, and no answer comes from a cache, so that only the code decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.remat_cli.kinds import KINDS

SOME, MORE = "20k", "100k"  # moves of a search
DEFAULT = ("--runtime", "stock")
TORCH = "torch_cnn"
KIND = "kind:"  # how the name of a model begins that is made, not read
PERCEPTRON = "perceptron"  # a forward model with a symbolic batch


@dataclass(frozen=True)
class Question:
    """`model`: a file of tests/data, `kind:` and the name of a kind, or `perceptron`. `flags`: of the command.

    `totals`: what the cost file says of the whole graph, beside estimates; None: there is no cost file. `first`: a
    question asked before, whose plan is at hand as `first.plan.json`. `beside`: whether that plan stands where the new
    one goes. `quick`: whether `make test` asks it.
    """

    model: str
    flags: tuple[str, ...]
    totals: dict[str, object] | None = None
    first: tuple[str, ...] = ()
    beside: bool = False
    quick: bool = True
    command: str = "solve"


def solve(model: str, budget: str | None, *flags: str, work: str = SOME, quick: bool = True) -> Question:
    asked = () if budget is None else ("--budget", budget)
    return Question(model, (*asked, "--work-limit", work, *flags), quick=quick)


def tried(model: str, budget: str, totals: dict[str, object], *flags: str, quick: bool = True) -> Question:
    """Of a model that was seen to hold something else than is reckoned with."""
    return Question(model, ("--budget", budget, "--work-limit", SOME, *flags), totals, quick=quick)


CNN_SEEN: dict[str, object] = {"default_peaks": [2463532, 3416116], "peak": 2430240, "launch": 881, "probe": 239593}
OTHERWISE: dict[str, object] = {"unlike": "the model holds more than is reckoned with: no op alone", "peak": 2500000}
AT_70 = ("--budget", "70%", "--work-limit", SOME)

QUESTIONS: dict[str, Question] = {
    # the strict session with planned places
    "cnn 90%": solve(TORCH, "90%"),
    "cnn 70%": solve(TORCH, "70%", work=MORE),
    "cnn 70% by another seed": solve(TORCH, "70%", "--seed", "7"),
    "cnn 60%": solve(TORCH, "60%"),
    "cnn 57%": solve(TORCH, "57%"),
    "cnn infeasible": solve(TORCH, "40%"),
    "cnn far too little": solve(TORCH, "17"),
    "cnn as it is": solve(TORCH, "100%"),
    "cnn with more than it needs": solve(TORCH, "1GB"),
    "unet 80%": solve("torch_unet_convt", "80%"),
    "unet 62%": solve("torch_unet_convt", "62%"),
    "another exporter's mlp, infeasible": solve("ort_mlp", "80%"),
    "another exporter's mlp 99%": solve("ort_mlp", "99%"),
    "lstm 85%": solve(f"{KIND}lstm_both_ways", "85%"),
    "dropout 85%": solve(f"{KIND}dropout_unseeded", "85%"),
    "quantized 85%": solve(f"{KIND}quantized", "85%"),
    # default sessions
    "cnn 90% by default": solve(TORCH, "90%", *DEFAULT),
    "cnn 80% by default": solve(TORCH, "80%", *DEFAULT),
    "cnn 70% by default": solve(TORCH, "70%", *DEFAULT, quick=False),
    "cnn infeasible by default": solve(TORCH, "35%", *DEFAULT),
    "cnn by default as it is": solve(TORCH, "100%", *DEFAULT),
    "cnn 85% by default and milp": solve(TORCH, "85%", *DEFAULT, "--method", "milp"),
    "cnn 85% by default and chen-greedy": solve(TORCH, "85%", *DEFAULT, "--method", "chen-greedy"),
    "unet 80% by default": solve("torch_unet_convt", "80%", *DEFAULT, work="2k", quick=False),
    "dropout 90% by default": solve(f"{KIND}dropout_unseeded", "90%", *DEFAULT),
    "rnn 92% by default": solve(f"{KIND}rnn", "92%", *DEFAULT),
    # models that were seen to hold something else, so that plans are tried
    "cnn 80% tried by default": tried(TORCH, "80%", CNN_SEEN, *DEFAULT),
    "cnn 72% tried by default": tried(TORCH, "72%", CNN_SEEN, *DEFAULT, quick=False),
    "cnn infeasible, tried by default": tried(TORCH, "15%", CNN_SEEN, *DEFAULT),
    "rnn 92% tried by default": tried(f"{KIND}rnn", "92%", {"default_peaks": [70000, 70000]}, *DEFAULT, quick=False),
    "cnn 80% tried": tried(TORCH, "80%", OTHERWISE),
    "cnn too little, tried": tried(TORCH, "30%", OTHERWISE),
    "cnn 80% of what was measured": tried(TORCH, "80%", {"peak": 2430240, "launch": 500}),
    # methods, and what they can be told
    "cnn 58% by milp": solve(TORCH, "58%", "--method", "milp", quick=False),
    "cnn 70% by milp in another order": solve(TORCH, "70%", "--method", "milp", "--reorder"),
    "cnn 52% by milp in its order alone": solve(TORCH, "52%", "--method", "milp", "--no-reorder"),
    "cnn 80% by lp-walks": solve(TORCH, "80%", "--method", "lp-walks"),
    "cnn 70% by chen-sqrt": solve(TORCH, "70%", "--method", "chen-sqrt"),
    "cnn 80% by recompute-all": solve(TORCH, "80%", "--method", "recompute-all"),
    "cnn by min-cut": solve(TORCH, None, "--method", "min-cut"),
    "cnn 80% by min-cut, fused by the runtime": solve(TORCH, "80%", "--method", "min-cut", "--fusion", "runtime"),
    "unet 80% by evict": solve("torch_unet_convt", "80%", "--method", "evict"),
    "dropout of least peak": solve(f"{KIND}dropout_unseeded", None, "--minimize", "peak"),
    "dropout of least peak by default": solve(f"{KIND}dropout_unseeded", None, "--minimize", "peak", *DEFAULT),
    # plans that are known
    "cnn 80% from a plan": Question(
        TORCH, ("--budget", "80%", "--work-limit", SOME, "--method", "milp", "--from", "first.plan.json"), first=AT_70
    ),
    "cnn 80% beside a better plan": Question(
        TORCH, ("--budget", "80%", "--work-limit", "1k"), first=("--budget", "78%", "--work-limit", MORE), beside=True
    ),
    "cnn 79% by default beside a plan": Question(
        TORCH,
        ("--budget", "79%", "--work-limit", "1k", *DEFAULT),
        first=("--budget", "78%", "--work-limit", SOME, *DEFAULT),
        beside=True,
    ),
    # problems without a model
    "linear8": solve("checkmate/linear8.problem.json", "75%"),
    "linear4 infeasible": solve("checkmate/linear4.problem.json", "2"),
    "unet's problem 60%": solve("networks/unet.problem.json", "60%", "--method", "evict"),
    "a chain by rotor": solve("chain.chain.json", "95%", "--method", "rotor"),
    # several questions in one, by methods that end by themselves
    "a sweep": Question(
        TORCH,
        (
            "--budgets",
            "100%,85%,60%,30%",
            "--methods",
            "evict,chen-greedy,ap-sqrt",
            "--time-limit",
            "10m",
            "-o",
            "plans",
        ),
        command="sweep",
    ),
    "a sweep by default": Question(
        TORCH,
        ("--budgets", "95%,80%", "--methods", "evict,checkpoint-all", "--time-limit", "10m", "-o", "plans", *DEFAULT),
        command="sweep",
    ),
    "a largest batch": Question(
        PERCEPTRON,
        (
            "--budget",
            "500kB",
            "--method",
            "evict",
            "--estimate",
            "cpu",
            "--time-limit",
            "10m",
            "--baselines",
            "ap-sqrt",
        ),
        command="max-batch",
    ),
    "no batch fits": Question(
        PERCEPTRON,
        ("--budget", "20kB", "--method", "evict", "--estimate", "cpu", "--time-limit", "10m", "--baselines", "ap-sqrt"),
        command="max-batch",
    ),
    "a batch of jobs": Question(TORCH, ("manifest.yaml", "--report", "report.json"), command="batch"),
}

assert all(asked.model.removeprefix(KIND) in KINDS for asked in QUESTIONS.values() if asked.model.startswith(KIND))
