"""How far a posterior can be trusted: one verdict, the same in Python, in the terminal, in reports and in files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .shown import Written

STATUSES = ("calibrated", "not calibrated", "undetermined", "did not converge", "unchecked")
CAUSES = ("rounding", "noise", "points", "model")

# What is compared: fresh values of `u`, or errors of `u` inside that are estimated from residuals.
VALUES, INSIDE = "u", "u inside"
# Error bars hold if the root mean square of `z`, and the fraction of values in the 95 % interval, are in these ranges.
Z, COVERED = (0.4, 2.0), (0.90, 0.985)
# The same for estimated errors: of two estimates of one error, from different residuals, one may be twice the other.
COVERED_AS_ESTIMATED = (0.80, 0.998)
# The same where the comparison is not strict: error bars that are far too narrow count, wide ones do not.
NEARLY_Z, NEARLY_COVERED = (0.0, 3.0), (0.70, 1.0)
# Errors below this fraction of the size of the values are rounding: error bars can be neither right nor wide there.
ROUNDING = 1e-6
# Error bars below this fraction of the size of the values are not called too wide.
NARROW_ENOUGH = 3e-6


@dataclass(frozen=True)
class Comparison:
    """Fresh values of one operator. `error` and `claimed`, the error bar, are root mean squares relative to `size`.

    `z_rms` and `coverage` are means over the values. Values of conditions are weighted by how much they tell about `u`
    at points inside. `strict` says whether error bars have to be right, or only nearly.
    `of` says what was compared.
    """

    name: str
    points: int
    size: float
    error: float
    claimed: float
    z_rms: float
    coverage: float
    worst: tuple[float, ...]
    worst_error: float
    strict: bool = True
    of: str = "fresh values"

    @property
    def inside(self) -> bool:
        """Whether it is the error of `u`, or of a field, inside."""
        return self.name.endswith(INSIDE.removeprefix(VALUES))

    @property
    def _limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ranges of `z` and of the coverage in which error bars hold."""
        if not self.strict:
            return NEARLY_Z, NEARLY_COVERED
        return Z, COVERED_AS_ESTIMATED if self.inside else COVERED

    @property
    def too_narrow(self) -> bool:
        z, covered = self._limits
        return self.z_rms > z[1] or (self.coverage < covered[0] and self.error >= ROUNDING)

    @property
    def too_wide(self) -> bool:
        """Whether error bars of `u` are too wide. If those of other operators are, those of `u` can still be right."""
        z, covered = self._limits
        matters = (self.name == VALUES or self.inside) and self.error >= ROUNDING and self.claimed >= NARROW_ENOUGH
        return matters and (self.z_rms < z[0] or self.coverage > covered[1])

    @property
    def calibrated(self) -> bool:
        return not (self.too_narrow or self.too_wide)

    def _in_words(self) -> str:
        """Whether the error bars are too narrow or too wide, in a sentence; empty if they are right."""
        if self.calibrated:
            return ""
        if self.too_wide and self.z_rms > 1:
            return (
                f"Errors of {self.name} are alike everywhere, {self.z_rms:.2g} times the claimed ones: that one number "
                f"is all that {self.points} {self.of} say about its error bars."
            )
        kind = "narrow" if self.too_narrow else "wide"
        return (
            f"Error bars of {self.name} are too {kind}: {self.coverage:.1%} of {self.points} {self.of} are in their "
            f"95 % intervals, and errors are {self.z_rms:.2g} times the claimed ones."
        )


@dataclass(frozen=True, repr=False, eq=False)
class Verdict(Written):
    """How far a posterior can be trusted: `posterior.verdict`, or the result of `posterior.check(problem)`.

    Predictions do not depend on it, so any two `Verdict`s compare as equal and can share compiled programs.

    **Arguments:**

    - `status`: `"calibrated"`, if fresh values are where the error bars say; `"not calibrated"`, if they are not;
      `"undetermined"`, if what was given does not determine `u`; `"did not converge"`, if Newton's method found no
      solution of a nonlinear equation; `"unchecked"`, if nothing was compared.
    - `reasons`: sentences that say why, and what to do.
    - `error_u`: the estimated error of `u` inside, relative to its size (not relative where `u` is zero); NaN if
      unchecked.
    - `ruled_by`: the main cause of this error: `"rounding"`, `"noise"`, `"points"` or `"model"`.
    - `advice`: what lowers the error.
    - `compared_with`: which values the error bars were calibrated with.
    - `comparisons`: the comparison for each operator that has fresh values.

    !!! example
        ```python
        assert posterior.verdict.status == "unchecked"
        ```
    """

    status: str
    reasons: tuple[str, ...] = ()
    error_u: float = math.nan
    ruled_by: str = ""
    advice: str = ""
    compared_with: str = "nothing"
    comparisons: tuple[Comparison, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Verdict)

    def __hash__(self) -> int:
        return hash(Verdict)

    @property
    def calibrated(self) -> bool:
        """Whether error bars hold, and what was given determines `u`."""
        return self.status == "calibrated"

    def to_json(self) -> dict[str, Any]:
        """The verdict as numbers and text.

        **Arguments:** none.

        **Returns:** a dictionary that JSON can hold.

        !!! example
            ```python
            assert posterior.verdict.to_json()["status"] == "unchecked"
            ```
        """
        parts = [asdict(item) | {"calibrated": item.calibrated} for item in self.comparisons]
        return asdict(self) | {"calibrated": self.calibrated, "comparisons": parts}

    def headline(self) -> str:
        """Status and error in one line.

        **Arguments:** none.

        **Returns:** a sentence.

        !!! example
            ```python
            print(posterior.verdict.headline())
            ```
        """
        about = "" if math.isnan(self.error_u) else f"about {self.error_u:.1e}"
        if self.status == "undetermined" and about:
            return f"Undetermined; the error of u is not known, and its error bars are {about}."
        return f"{self.status.capitalize()}; the error of u is {about or 'not known'}."

    def __str__(self) -> str:
        lines = [self.headline(), *(f"  {reason}" for reason in self.reasons)]
        for item in self.comparisons:
            lines.append(
                f"  {item.name}: error {item.error:.1e}, claimed {item.claimed:.1e}; {item.coverage:.1%} of "
                f"{item.points} {item.of} are in their 95 % intervals"
            )
        if places := [item for item in self.comparisons if item.worst]:
            worst = max(places, key=lambda item: item.worst_error)
            place = ", ".join(f"{value:.3g}" for value in worst.worst[:6]) + (", …" if len(worst.worst) > 6 else "")
            lines.append(f"  worst: {worst.name} at ({place}), off by {worst.worst_error:.1e}")
        return "\n".join([*lines, *([self.advice] if self.advice else [])])


UNCHECKED = Verdict(
    "unchecked", ("Nothing was compared with this posterior: posterior.check(problem) compares it with fresh values.",)
)


def from_json(found: Mapping[str, Any]) -> Verdict:
    """The verdict that `to_json` wrote, as `metrics.json` holds it: `None` stands for numbers that are not finite.

    Older runs have no status, no reasons and no worst place.
    """
    number = lambda row, name: math.nan if row.get(name) is None else float(row[name])
    comparisons = tuple(
        Comparison(
            name=row["name"],
            points=row["points"],
            worst=tuple(row.get("worst", ())),
            strict=row.get("strict") is not False,
            of=str(row.get("of", "fresh values")),
            size=number(row, "size"),
            error=number(row, "error"),
            claimed=number(row, "claimed"),
            z_rms=number(row, "z_rms"),
            coverage=number(row, "coverage"),
            worst_error=number(row, "worst_error"),
        )
        for row in found["comparisons"]
    )
    return Verdict(
        status=found.get("status") or ("calibrated" if found["calibrated"] else "not calibrated"),
        reasons=tuple(found.get("reasons", ())),
        error_u=number(found, "error_u"),
        ruled_by=found["ruled_by"],
        advice=found["advice"],
        compared_with=found.get("compared_with", "nothing"),
        comparisons=comparisons,
    )
