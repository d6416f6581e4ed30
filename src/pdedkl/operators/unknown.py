"""Marks of unknown fields: operators and coefficients leave the arithmetic to them, and texts name them."""


class InFull:
    """The mark of operators whose text contains the fields that they act on."""


class Unknown:
    """What operators are applied to with `@`, besides other operators: terms of equations."""
