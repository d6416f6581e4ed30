"""The mark of unknown fields, which operators and coefficients leave the arithmetic to."""


class Unknown:
    """What operators are applied to with `@`, besides other operators: terms of equations."""
