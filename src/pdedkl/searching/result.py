"""What a search found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..inference import Posterior
from ..shown import Rows, Shown
from .evaluation import Evaluation, Train, best_of, described
from .plot import draw, save
from .space import Parameters, Space
from .surrogate import Surrogate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Search(Shown):
    """The evaluations of a search and the best of them.

    **Arguments:**

    - `space`: the set that was searched.
    - `history`: the `Evaluation`s, in the order in which they were proposed.
    - `seed`: the seed of the search.

    !!! example
        ```python
        searched = pk.search(problem, data, latent_dims=[1, 2, 3])
        print(searched.best, searched.table())
        ```
    """

    space: Space
    history: list[Evaluation]
    seed: int = 0
    _train: Train | None = field(default=None, repr=False)
    _trained: Posterior | None = field(default=None, repr=False)

    @property
    def _best(self) -> Evaluation:
        best = best_of(self.history)
        if best is None:
            raise RuntimeError("No evaluation of this search succeeded.")
        return best

    @property
    def best(self) -> Parameters:
        """The parameters of the lowest objective."""
        return dict(self._best.parameters)

    @property
    def objective(self) -> float:
        """The lowest objective."""
        return self._best.rank

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of the best parameters; trained again, with the same result, if another process made it."""
        if self._trained is not None:
            return self._trained
        if self._train is None:
            raise RuntimeError("This search does not know how to train its posterior: call pdedkl.search again.")
        return self._train(self.best)[1]

    @cached_property
    def surrogate(self) -> Surrogate:
        """The Gaussian process through all evaluations."""
        return Surrogate(self.space, [(item.parameters, item.objective) for item in self.history], self.seed)

    def _described(self) -> tuple[str, Rows]:
        best = best_of(self.history)
        failed = sum(item.objective is None for item in self.history)
        return f"Search over {', '.join(self.space.names)}: {len(self.history)} of {len(self.space)} values tried", {
            "best": "none succeeded" if best is None else f"{described(best.parameters)}, objective {best.rank:.2f}",
            "failed": str(failed),
            "time": f"{sum(item.seconds for item in self.history):.1f} s of training",
        }

    def table(self) -> str:
        """One line for each evaluation, with a star at the best.

        **Arguments:** none.

        **Returns:** the lines of a table.

        !!! example
            ```python
            print(pk.search(problem, data, latent_dims=[1, 2, 3]).table())
            ```
        """
        names = self.space.names
        lines = [f"{'#':>3}" + "".join(f"{name:>16}" for name in names) + f"{'objective':>14}{'seconds':>10}"]
        for number, item in enumerate(self.history, start=1):
            values = "".join(f"{item.parameters[name]:>16g}" for name in names)
            objective = "failed" if item.objective is None else f"{item.objective:.2f}"
            mark = "  *" if item is self._best else f"  {item.error}" if item.error else ""
            lines.append(f"{number:>3}{values}{objective:>14}{item.seconds:>10.1f}{mark}")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """The objective over the latent dimension, with the surrogate of the search.

        **Arguments:**

        - `path`: a file to store it in, `.png`, `.svg` or `.pdf`; none by default.

        **Returns:** a matplotlib `Figure`.

        !!! example
            ```python
            figure = pk.search(problem, data, latent_dims=[1, 2, 3]).plot()
            ```
        """
        figure = draw(self.space, self.history, self._best, self.surrogate)
        if path is not None:
            save(figure, Path(path))
        return figure
