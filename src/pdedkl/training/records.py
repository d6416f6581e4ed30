"""What a posterior remembers of its training, and the warning of a fit that did not end as it should."""

from __future__ import annotations

from dataclasses import dataclass

from ..shown import Rows, Shown, listed
from .monitor import Step
from .newton import Iteration


class FitWarning(UserWarning):
    """A fit did not end as it should: not calibrated, undetermined, or with large errors."""


@dataclass(frozen=True)
class Round:
    """One round of `solve`: how many values, the kernel, the estimated error of `u`, the verdict on it, and its time.

    **Arguments:**

    - `values`: how many values the posterior was conditioned on.
    - `kernel`: what was tried, and the kernel that was kept.
    - `error`: the estimated error of `u`, relative to its size; NaN if it is not known.
    - `status`: the status of the verdict.
    - `seconds`: the time that the round took.

    !!! example
        ```python
        solved = pk.solve(problem, accuracy=1e-2, seconds=60, progress=False)
        assert solved.training.rounds[-1].values > 0
        ```
    """

    values: int
    kernel: str
    error: float
    status: str
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Training(Shown):
    """How a posterior was trained: `posterior.training`.

    Predictions do not depend on it, so any two `Training`s compare as equal and can share compiled programs.

    **Arguments:**

    - `recipe`: the recipe, `"default"` or `"paper"`.
    - `model`: the kind of model, `"dkl"`, `"linear"` or `"gp"`.
    - `seed`: the seed.
    - `kernel`: the kernel that was kept.
    - `objective`: the training objective of that kernel: the negative log evidence plus the priors.
    - `candidates`: the kernels that were tried, with their objectives.
    - `left_out`: the left-out error, with each value predicted from all others: root mean square, relative to the size
      of the data, the largest over the observations. Expect an error of this size between the data.
    - `validated`: the same for the validation data, if there were any.
    - `rejected`: how many steps were rejected because they were not finite.
    - `stopped`: why the run ended early; `None` if it did not.
    - `seconds`: how long it took, earlier processes of a resumed run included.
    - `trace_seconds`: the part of this time in which JAX traced programs.
    - `compile_seconds`: the part of this time in which JAX compiled programs, or loaded them from its cache.
    - `history`: the `Step`s, those of earlier processes included.
    - `trained_values`: how many values kernel and noise were learned from.
    - `solver`: the solver of the posterior, `"dense"` or `"iterative"`.
    - `rounds`: what `solve` did, as `Round`s; none after `fit`.
    - `iterations`: the iterations of Newton's method, for nonlinear equations: residual, step, change and evidence.
    - `sets`: the sets of inputs that act together, if the kernel that was kept is a sum over such sets; their shares of
      the variance are in `posterior.interactions()`.
    - `converged`: whether these ended at a solution.

    !!! example
        ```python
        training = pk.fit(problem, data).training
        ```
    """

    recipe: str
    model: str
    seed: int
    kernel: str
    objective: float
    candidates: tuple[tuple[str, float], ...]
    left_out: float
    validated: float | None
    rejected: int
    stopped: str | None
    seconds: float
    trace_seconds: float
    compile_seconds: float
    history: tuple[Step, ...]
    trained_values: int | None = None
    solver: str | None = None
    rounds: tuple[Round, ...] = ()
    iterations: tuple[Iteration, ...] = ()
    sets: tuple[tuple[str, ...], ...] = ()
    converged: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Training)

    def __hash__(self) -> int:
        return hash(Training)

    def _in_words(self) -> str:
        """Recipe, model, seed and time in words."""
        stopped = f", {self.stopped}" if self.stopped else ""
        return f"recipe {self.recipe}, model {self.model}, seed {self.seed}, {self.seconds:.1f} s{stopped}"

    def _described(self) -> tuple[str, Rows]:
        rows = {
            "kernel": f"{self.kernel}, the best of {len(self.candidates)}",
            "objective": f"{self.objective:.2f}",
            "left-out error": f"{self.left_out:.1e}",
        }
        if self.validated is not None:
            rows["error of fresh values"] = f"{self.validated:.1e}"
        if self.sets:
            rows["together"] = listed([" · ".join(own) for own in self.sets if len(own) > 1], most=20) or "no inputs"
        rows["steps"] = f"{len(self.history)}, {self.rejected} rejected; {self.compile_seconds:.1f} s of compilation"
        return f"Training: {self._in_words()}", rows

    def table(self) -> str:
        """The rounds of `solve` and the iterations of Newton's method, if there were any; the kernels that were tried,
        and their objectives. A star marks the one that was kept.

        **Arguments:** none.

        **Returns:** the lines of a table.

        !!! example
            ```python
            training = pk.fit(problem, data).training
            print(training.table() if training else "not trained")
            ```
        """
        lines = []
        if self.rounds:
            lines.append(f"{'round':<7}{'values':>7}{'error of u':>12}{'seconds':>9}  {'verdict':<16}kernel")
            for number, item in enumerate(self.rounds, 1):
                facts = f"{number:<7}{item.values:>7}{item.error:>12.1e}{item.seconds:>9.0f}  {item.status:<16}"
                lines.append(facts + item.kernel)
            lines.append("")
        if self.iterations:
            lines.append(f"{'linearisation':<16}{'residual':>10}{'step':>8}{'change':>10}{'objective':>12}")
            for it in self.iterations:
                facts = f"{it.phase:<16}{it.residual:>10.1e}{it.step:>8.3g}{it.change:>10.1e}{it.objective:>12.1f}"
                lines.append(facts)
            lines.append("")
        lines.append(f"{'kernel':<32}{'objective':>12}")
        for name, value in self.candidates:
            lines.append(f"{name:<32}{value:>12.1f}" + ("  *" if name == self.kernel else ""))
        return "\n".join(lines)
