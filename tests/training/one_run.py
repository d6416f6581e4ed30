"""One training run in a process of its own: `python one_run.py RECIPE MODEL RESULT [CHECKPOINT]`."""

from __future__ import annotations

import sys

import numpy as np
import ridge

import pdedkl as pk
from pdedkl.training import paper

STEPS = 25


def main(recipe: str, model: str, result: str, checkpoint: str | None = None) -> None:
    paper.STEPS = STEPS
    posterior = pk.fit(
        ridge.DOMAIN, ridge.observations(), recipe=recipe, model=model, checkpoint=checkpoint, checkpoint_every=0.0
    )
    np.save(result, np.append(ridge.parameters(posterior), posterior.training.objective))


if __name__ == "__main__":
    main(*sys.argv[1:])
