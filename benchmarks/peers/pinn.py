"""A physics-informed network with DeepXDE, in 64 bits: Adam, then L-BFGS. Runs in the environment `.venv-peers`.

The derivatives come from DeepXDE's `hessian`, one backward pass for each coordinate, or from one forward pass that
carries `A u` along; network, losses and optimisers are the same. Settings are chosen by fresh values of `u` and `f`
(`--tune`), never by the solution.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from task import Rows, Task, Trail

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde
import torch

# L-BFGS reports after so many iterations; with as many points as it likes, it has new ones after so many more.
REPORTED, REDRAWN = 20, 500
# So many points of each kind for L-BFGS, in batches of Adam's; L-BFGS bears no noise.
LARGER = 4
# Adam leaves at least this part of the time to L-BFGS.
LEFT = 0.5


@dataclass(frozen=True)
class Setting:
    """`weight` is that of the loss of `u` against that of `f`, `adam` the steps before L-BFGS.

    `batch` is the number of points of each kind in a step of Adam, where they are drawn anew.
    """

    weight: float = 10.0
    rate: float = 1e-2
    adam: int = 1000
    width: int = 32
    depth: int = 2
    batch: int = 200


# Walked one after the other from the setting above, up and down for as long as the score falls.
LADDERS: dict[str, tuple] = {
    "width": (4, 8, 16, 32, 64, 128),
    "depth": (1, 2, 3, 4),
    "rate": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    "weight": (0.1, 1.0, 10.0, 100.0, 1000.0),
    "adam": (50, 200, 1000, 5000, 20000),
    "batch": (50, 100, 200, 500, 2000),
}


class Losses(dde.data.Data):
    """Mean squares of `u − values` and of `A u − f`, each relative to the size of its values."""

    def __init__(self, task: Task, rows: Rows, batch: int | None, operate: Callable, seed: int) -> None:
        self.rows, self.operate, self.batch = rows, operate, batch
        self.sizes = [float(np.mean(values**2)) for values in (task.given.u_values, task.given.f_values)]
        self.rng = np.random.default_rng([seed, 8])
        self.each_step = True
        self.draw(batch)

    def draw(self, n: int | None) -> None:
        def some(points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            kept = slice(None) if n is None else self.rng.choice(len(values), min(n, len(values)), replace=False)
            return points[kept], values[kept, None]

        self.of_u = some(self.rows.u_points, self.rows.u_values)
        inside, values = some(self.rows.f_points, self.rows.f_values)
        self.of_f = torch.as_tensor(inside), torch.as_tensor(values)

    def train_next_batch(self, batch_size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        if self.each_step and self.batch is not None:
            self.draw(self.batch)
        return self.of_u

    def losses_train(self, targets, outputs, loss_fn, inputs, model, aux=None) -> list:
        points, values = self.of_f
        residual = self.operate(model.net, points) - values
        return [loss_fn(targets, outputs) / self.sizes[0], torch.mean(residual**2) / self.sizes[1]]

    # DeepXDE measures losses of test data as it goes; there are none, and it takes no time.
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        return self.of_u[0][:1], self.of_u[1][:1]

    def losses_test(self, targets, outputs, loss_fn, inputs, model, aux=None) -> list:
        return [torch.zeros(()), torch.zeros(())]


def by_hessian(task: Task) -> Callable:
    """`A u` as DeepXDE computes derivatives."""
    b = torch.as_tensor(task.b)

    def operate(net: Any, points: torch.Tensor) -> torch.Tensor:
        x = points.requires_grad_()
        u = net(x)
        total = task.c * u
        if task.b.any():
            total = total + (dde.grad.jacobian(u, x, i=0) @ b)[:, None]
        for i in np.flatnonzero(task.a):
            total = total + task.a[i] * dde.grad.hessian(u, x, i=i, j=i)
        return total

    return operate


def by_forward_pass(task: Task) -> Callable:
    """`L tanh(z) = tanh'(z) L z + tanh''(z) Σ_i a_i (∂_i z)²` from layer to layer, for `L = b·∇ + Σ_i a_i ∂_i²`."""
    slope = torch.as_tensor(2 / (task.upper - task.lower))
    axes = np.flatnonzero(task.a)
    a, b = torch.as_tensor(task.a[axes]), torch.as_tensor(task.b)

    def operate(net: Any, points: torch.Tensor) -> torch.Tensor:
        h, first = net._input_transform(points), 1.0
        operated, slopes = (slope * b)[None, :], torch.diag(slope)[axes, None, :]
        for linear in net.linears[:-1]:
            operated, slopes = operated @ linear.weight.T, (first * slopes) @ linear.weight.T
            h = torch.tanh(linear(h))
            first = 1 - h * h
            operated = first * (operated - 2 * h * torch.einsum("k,knw->nw", a, slopes * slopes))
        last = net.linears[-1]
        return task.c * last(h) + operated @ last.weight.T

    return operate


OPERATORS = {"hessian": by_hessian, "forward": by_forward_pass}


class Watch(dde.callbacks.Callback):
    """Records errors, and ends the training when its time is over."""

    def __init__(self, trail: Trail, until: float) -> None:
        super().__init__()
        self.trail, self.until = trail, until

    def on_epoch_end(self) -> None:
        if self.trail.due:
            self.trail.add(lambda points: predicted(self.model.net, points))
        if self.trail.seconds > self.until:
            self.model.stop_training = True


def predicted(net: Any, points: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return net(torch.as_tensor(points)).numpy()[:, 0]


def train(task: Task, points: str, derivatives: str, setting: Setting, seconds: float, seed: int) -> tuple[Any, Trail]:
    """The trained network, and its errors on the way."""
    dde.config.set_random_seed(seed)
    trail = Trail(task)
    net = dde.nn.FNN([len(task.b), *[setting.width] * setting.depth, 1], "tanh", "Glorot normal")
    lower, upper = torch.as_tensor(task.lower), torch.as_tensor(task.upper)
    net.apply_feature_transform(lambda x: 2 * (x - lower) / (upper - lower) - 1)
    drawn = points == "pool"
    batch = setting.batch if drawn else None
    data = Losses(task, getattr(task, points), batch, OPERATORS[derivatives](task), seed)
    model = dde.Model(data, net)
    weights = [setting.weight, 1.0]
    model.compile("adam", lr=setting.rate, loss_weights=weights, verbose=0)
    never = setting.adam + 1
    model.train(setting.adam, callbacks=[Watch(trail, LEFT * seconds)], display_every=never, verbose=0)
    data.each_step = False
    dde.optimizers.set_LBFGS_options(maxcor=50, gtol=0, maxiter=REDRAWN if drawn else 10**6)
    dde.optimizers.config.LBFGS_options |= {"iter_per_step": REPORTED, "fun_per_step": 2 * REPORTED}
    while trail.seconds < seconds:
        if drawn:
            data.draw(LARGER * setting.batch)
        model.compile("L-BFGS", loss_weights=weights, verbose=0)
        model.train(callbacks=[Watch(trail, seconds)], verbose=0)
        if not drawn:
            break
    trail.add(lambda points: predicted(net, points))
    return net, trail


def tune(task: Task, points: str, seconds: float, seed: int) -> tuple[Setting, list[dict]]:
    """The best setting by fresh values of `u` and `f`, walking one ladder after the other; and all that was tried.

    A run on the given points takes them all in each step, so it has no batch to choose.
    """
    fresh, operate = task.fresh, by_forward_pass(task)
    tried: dict[Setting, float] = {}

    def score(setting: Setting) -> float:
        if setting not in tried:
            net, _ = train(task, points, "forward", setting, seconds, seed)
            with torch.no_grad():
                f = operate(net, torch.as_tensor(fresh.f_points)).numpy()[:, 0]
            tried[setting] = task.score(predicted(net, fresh.u_points), f)
        return tried[setting]

    best = Setting()
    for name, ladder in LADDERS.items():
        if name == "batch" and points == "given":
            continue
        for step in (-1, 1):
            place = ladder.index(getattr(best, name)) + step
            while 0 <= place < len(ladder) and score(other := replace(best, **{name: ladder[place]})) < score(best):
                best, place = other, place + step
    return best, [asdict(setting) | {"score": score} for setting, score in tried.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", choices=("given", "pool"), default="given")
    parser.add_argument("--derivatives", choices=tuple(OPERATORS), default="forward")
    parser.add_argument("--tune", action="store_true", help="choose a setting, `--seconds` for each")
    parser.add_argument("--setting", type=json.loads, default={}, help="as chosen")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dde.config.set_default_float("float64")
    task = Task.load(options.task)
    found: dict[str, Any] = {"versions": {"deepxde": dde.__version__, "torch": torch.__version__}}
    if options.tune:
        begin = time.monotonic()
        setting, tried = tune(task, options.points, options.seconds, options.seed)
        found |= {"setting": asdict(setting), "tried": tried, "tuning_seconds": time.monotonic() - begin}
    else:
        setting = Setting(**options.setting)
        # PyTorch imports the rest of itself in the first step.
        train(task, options.points, options.derivatives, replace(setting, adam=1), 0.0, options.seed)
        _, trail = train(task, options.points, options.derivatives, setting, options.seconds, options.seed)
        found |= {"setting": asdict(setting), "trail": trail.pairs}
    options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
