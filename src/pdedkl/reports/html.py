"""One self-contained page about a solved problem: it loads nothing from the network."""

from __future__ import annotations

import base64
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import write_atomically
from ..inference import Posterior
from ..inference.shares_of_sums import is_sum
from ..observations import Learned, Observation
from ..operators.base import applied
from ..verdicts import from_json
from . import figures, inside
from .explorer import explorer
from .graph import which_inputs_act_together
from .mathml import checked
from .policy import policy
from .results import Part, Results, evaluate
from .style import PAGE_CM, as_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# The file name of a picture, its title, its caption, and the function that draws it.
Drawing = tuple[str, str, str, Callable[[], "Figure"]]
LIBRARIES = ("numpy", "scipy", "jax", "equinox", "matplotlib")


@dataclass(frozen=True)
class Picture:
    """A figure with its file name, title and caption."""

    name: str
    title: str
    caption: str
    figure: Figure
    drawn: bytes = field(default=b"", repr=False)  # as SVG, where that was done before

    @property
    def width(self) -> float:
        """The width in units of the page's font size, so that the text in all pictures has the same size."""
        return round(47.0 * self.figure.get_figwidth() * 2.54 / PAGE_CM, 1)

    @property
    def source(self) -> str:
        svg = self.drawn or as_bytes(self.figure, "svg")
        return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def pictures(
    posterior: Posterior,
    problem: Any,
    results: Results,
    seed: int = 0,
    failed: Callable[[str, Exception], None] | None = None,
) -> list[Picture]:
    """All pictures that can be made of this posterior. Without an exact solution or a training there are fewer.

    If a picture cannot be drawn, its error is raised. If `failed` is given, `failed(name, error)` is called instead,
    and the picture is left out.
    """
    found = []
    for name, title, caption, draw in _drawings(posterior, problem, results, seed):
        try:
            found.append(Picture(name, title, caption, draw()))
        except Exception as error:
            if failed is None:
                raise
            failed(name, error)
    return found


def _drawings(posterior: Posterior, problem: Any, results: Results, seed: int) -> Iterator[Drawing]:
    if known := results.known():
        caption = (
            f"Each of {len(results.points)} fresh points is a dot with its 95 % interval. The lower panels show the "
            "same with the truth subtracted."
        )
        yield "truth", "Predicted against true", caption, lambda: figures.predicted_against_true(results)
    title, caption = "A slice of the domain", "Two inputs drawn at random, the others fixed at a random interior point."
    if problem.domain.dim == 1:
        title, caption = "The solution", "Prediction and 95 % interval over the whole domain."
    for number, part in enumerate(results.fields):
        name, of = ("slice", "") if len(results.fields) == 1 else (f"slice-{part.name}", f": {part.label}")
        yield name, title + of, caption, partial(figures.slice_maps, posterior, problem, seed, field=number)
    if (vector := figures.vector_in_the_plane(problem)) is not None:
        both = ", ".join(results.fields[number].label for number in vector[:2])
        caption = "Predicted means as arrows over the two inputs of the plane, others fixed at a random interior point."
        yield "arrows", f"The vector ({both})", caption, partial(figures.arrows, posterior, problem, vector, seed)
    if known:
        caption = (
            "The fraction of true values inside intervals of a given level. On the diagonal the error bars are right; "
            "above it they are wider than needed, below it too narrow."
        )
        yield "calibration", "Are the error bars right?", caption, lambda: figures.calibration(results)
    caption = (
        "Root mean square slope of the prediction along each input, times the input's width: how much u changes across "
        "the domain, to first order."
    )
    strengths = lambda: inside.sensitivity(posterior, problem, seed=seed)
    yield "inputs", "Which inputs matter", caption, lambda: inside.which_inputs_matter(problem.domain, strengths())
    if problem.domain.dim > 1 and not any(problem.domain.balls) and is_sum(posterior):
        caption = (
            "Dots: what each input does to u alone, as a share of its variance over the domain. Lines: what two inputs "
            "do together. Triangles: three. Areas and widths grow with the root of the share."
        )
        shares = lambda: posterior.interactions(domain=problem.domain)
        yield "interactions", "Which inputs act together", caption, lambda: which_inputs_act_together(shares())
    if len(results.fields) == 1:
        caption = (
            "Fresh points in latent coordinates of the kernel, in units of its length scales. Only the coordinates "
            "along which the prediction changes most are shown."
        )
        yield "latent", "Latent coordinates", caption, lambda: inside.latent_coordinates(posterior, results)
    if posterior.parameters:
        caption = (
            "The density of each unknown number as a normal distribution on the scale on which it is learned and, if "
            "there are not too many values, along its profile, with everything else optimised. Red lines are the ends "
            "of the 95 % interval."
        )
        yield "parameters", "Unknown numbers", caption, lambda: posterior.parameters.plot()
    if posterior.training is not None and posterior.training.history:
        caption = (
            "Objective (negative log evidence plus priors, lower is better) and learned noise levels, phase by phase. "
            "Phases that only explore use a part of the data. The highest values are cut off."
        )
        yield "training", "Training", caption, lambda: inside.training_history(posterior.training.history)


def write_report(
    path: str | Path,
    posterior: Posterior,
    problem: Any,
    metrics: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    results: Results | None = None,
    shown: Sequence[Picture] | None = None,
    seed: int = 0,
) -> Path:
    """Write one self-contained page about the posterior of a problem, and return its path.

    `metrics` is a dictionary with the names of `metrics.json`, by default the result of `evaluate`. `settings` are the
    settings that are needed to repeat the run. `results` and `shown` are computed unless the caller gives them.
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(f"A report needs a Posterior, from fit or condition: got {type(posterior).__name__}.")
    if posterior.model.kernel.dim != problem.domain.dim:
        raise ValueError(
            f"The posterior is over {posterior.model.kernel.dim} inputs and the problem has {problem.domain.dim}: "
            "report the posterior of this problem."
        )
    results = results or evaluate(posterior, problem, seed=seed)
    measured = dict(results.metrics() if metrics is None else metrics)
    strengths = inside.sensitivity(posterior, problem, seed=seed)
    axes = tuple(sorted(np.argsort(-strengths, kind="stable")[:2].tolist())) if problem.domain.dim > 1 else (0, 0)
    drawn = pictures(posterior, problem, results, seed) if shown is None else shown
    explored = explorer(posterior, problem.domain, axes=(axes[0], axes[1]))
    style = _style(drawn)
    page = _template().render(
        problem=problem,
        policy=policy(explored.script, style),
        style=style,
        mathml=checked(problem.mathml or ""),
        domain=str(problem.domain),
        conditions=[s.label for s in problem.statements if not s.label.startswith(("source", "equation"))],
        accuracy=_accuracy(measured, results.parts),
        calibration=_calibration(measured, results.parts),
        trivial=_trivial(measured),
        check=_check(posterior, measured.get("check")),
        clamped={p.label: measured[f"clamped_{p.name}"] for p in results.parts if measured.get(f"clamped_{p.name}")},
        observations=[_observation(item, posterior) for item in posterior.observations],
        training=posterior.training,
        candidates=_candidates(posterior),
        rounds=_rounds(posterior),
        parameters=posterior.parameters,
        iterations=_iterations(posterior),
        pictures=drawn,
        explorer=explored,
        fields=[part.name for part in results.fields],
        first=results.fields[0].label,
        settings=_settings(settings or {}, posterior, seed),
        versions=_versions(),
        numbers={key: _number(value) for key, value in measured.items() if isinstance(value, int | float)},
    )
    # A file name may contain bytes that are not valid text.
    write_atomically(Path(path), page.encode("utf-8", "backslashreplace"))
    return Path(path)


def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(files(__package__).joinpath("report.html.jinja").read_text("utf-8"))


def _style(drawn: Sequence[Picture]) -> str:
    """The style sheet, with the widths of the pictures: the security policy allows no style in an element."""
    widths = [f"img.picture-{number} {{ max-width: {item.width:g}rem; }}" for number, item in enumerate(drawn, start=1)]
    return "\n".join(["", files(__package__).joinpath("report.css").read_text("utf-8"), *widths, ""])


def _accuracy(measured: Mapping[str, Any], parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The errors of fields and equations, and whether each is relative."""
    return [
        {
            "name": part.name,
            "label": part.label,
            "error": _number(error),
            "relative": measured.get(f"error_{part.name}_relative", True),
        }
        for part in parts
        if (error := measured.get(f"error_{part.name}")) is not None
    ]


def _trivial(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The errors of the best constant and the best line, and their ratios to the model's error.

    `nearest` marks the better of the two.
    """
    own = measured.get("error_u")
    names = {"constant_u": "best constant", "line_u": "best straight line"}
    errors = {name: measured[key] for key, name in names.items() if measured.get(key) is not None}
    return [
        {
            "name": name,
            "error": _number(error),
            "times": _times(error / own) if own else "–",
            "nearest": error == min(errors.values()),
        }
        for name, error in errors.items()
    ]


def _calibration(measured: Mapping[str, Any], parts: Sequence[Part]) -> list[dict[str, Any]]:
    rows = []
    for part in parts:
        name = part.name
        inside_of = measured.get(f"coverage_{name}")
        if not inside_of:
            continue
        numbers = [(key, measured.get(f"{key}_{name}")) for key in ("z_rms", "nlpd", "crps", "sharpness")]
        rows.append(
            {
                "name": name,
                "label": part.label,
                "coverage": {level: f"{100 * value:.1f} %" for level, value in inside_of.items()},
                "numbers": {key: "–" if value is None else _number(value) for key, value in numbers},
            }
        )
    return rows


def _check(posterior: Posterior, found: Mapping[str, Any] | None) -> dict[str, Any]:
    """The verdict in its own words: that of the posterior, or of the metrics if the posterior has none."""
    verdict = posterior.verdict
    if verdict.status == "unchecked" and found is not None:
        verdict = from_json(found)
    rows = [
        {key: _number(_finite(getattr(row, key))) for key in ("points", "error", "claimed", "z_rms")}
        | {"name": row.name, "coverage": f"{100 * row.coverage:.1f} %" if np.isfinite(row.coverage) else "–"}
        for row in verdict.comparisons
    ]
    return {
        "kind": verdict.status.replace(" ", "-"),
        "headline": verdict.headline(),
        "reasons": verdict.reasons,
        "advice": verdict.advice,
        "compared_with": verdict.compared_with,
        "comparisons": rows,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _candidates(posterior: Posterior) -> list[dict[str, Any]]:
    """The kernels that were tried, with their objectives."""
    training = posterior.training
    found = () if training is None else training.candidates
    return [{"name": name, "objective": _minus(f"{v:.1f}"), "kept": name == training.kernel} for name, v in found]


def _rounds(posterior: Posterior) -> list[dict[str, Any]]:
    """What was done to reach the wanted accuracy."""
    found = () if posterior.training is None else posterior.training.rounds
    return [
        {
            "values": item.values,
            "kernel": item.kernel,
            "error": f"{item.error:.1e}" if np.isfinite(item.error) else "not known",
            "status": item.status,
            "seconds": f"{item.seconds:.0f}",
        }
        for item in found
    ]


def _iterations(posterior: Posterior) -> list[dict[str, str]]:
    """What Newton's method did."""
    found = () if posterior.training is None else posterior.training.iterations
    return [
        {
            "phase": item.phase,
            "residual": f"{item.residual:.1e}",
            "step": f"{item.step:.3g}",
            "change": f"{item.change:.1e}",
            "objective": _minus(f"{item.objective:.1f}"),
        }
        for item in found
    ]


def _observation(item: Observation, posterior: Posterior) -> dict[str, Any]:
    if isinstance(item.noise, Learned):
        noise = f"{float(np.exp(posterior.model.log_noise[item.noise_name or ''])):.2g} (learned)"
    elif item.noise.ndim:
        noise = "one per point"
    else:
        noise = "exact" if float(item.noise) == 0 else f"{float(item.noise):.2g}"
    operator = applied(item.operator)
    name = "" if item.name == operator else item.name
    return {"name": name, "operator": operator, "points": len(item), "noise": noise}


def _settings(settings: Mapping[str, Any], posterior: Posterior, seed: int) -> dict[str, str]:
    out = {str(key): _text(value) for key, value in settings.items()}
    if (training := posterior.training) is not None:
        out |= {
            "recipe": training.recipe,
            "model": training.model,
            "seed of the training": str(training.seed),
            "kernel": training.kernel,
            "seconds of training": f"{training.seconds:.1f}, of them {training.compile_seconds:.1f} compiling",
        }
        if training.stopped:
            out["stopped early"] = training.stopped
    out |= {
        "engine": posterior.model.engine,
        "jitter": f"{float(posterior.jitter):g}",
        "objective": f"{_minus(f'{float(posterior.objective):.2f}')} (negative log evidence)",
        "seed of fresh points": str(seed),
    }
    for name, value in posterior.unknowns().items():
        out[f"coefficient {name}"] = f"{value:.6g} (learned)"
    return out


def _versions() -> dict[str, str]:
    from .. import __version__

    found = {"pdedkl": __version__, "Python": platform.python_version()}
    return found | {name: version(name) for name in LIBRARIES} | {"system": f"{platform.system()} {platform.machine()}"}


def _text(value: Any) -> str:
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool | int):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return _minus(f"{value:.4g}")
    digits, power = f"{value:.2e}".split("e")
    return f"{_minus(digits)} × 10{str(int(power)).translate(_RAISED)}"


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _times(ratio: float) -> str:
    """Two digits, in groups of three."""
    if ratio >= 1e9 or ratio < 10:
        return _number(float(f"{ratio:.2g}"))
    return f"{float(f'{ratio:.2g}'):,.0f}".replace(",", "\u202f")
