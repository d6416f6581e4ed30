"""A tree of modules as JSON and named arrays, and back.

None, truth values, numbers, strings    as they are; infinities and NaN of a training and a verdict as {"float": "inf"}
tuples                                  [ … ]
dictionaries                            {"dict": { … }}
arrays                                  {"tensor": name, "shape": [ … ]}
objects of registered classes           {"is": tag, "fields": { … }}
Python functions                        {"function": name}, to be given again by name
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..embeddings import Embedding
from ..kernels import Profile
from ..means import Mean
from ..operators import Coefficient, Operator
from ..operators.coefficients import AbstractCoefficient
from .checks import check_object
from .fields import MisfitError, check_fields
from .functions import function_of_point, name_of, place_of
from .registry import OWN_TAG, class_of, tag_of

# Objects of these classes are callable, but they are not functions: a user's own class has to be registered.
EXTENSIBLE = (AbstractCoefficient, Embedding, Mean, Operator, Profile)


# Numbers here need not be finite, because nothing is computed from them.
TOLD = ("posterior.training", "posterior.verdict")
REPORTED = ("functions.", "posterior.solver.error")


class NotRegisteredError(LookupError):
    """A file contains an object of a class that the user has to register first."""


class Encoder:
    """Encodes a tree, and collects its arrays and the names of its functions."""

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.functions: dict[str, dict[str, Any]] = {}  # what each is part of, by name
        self.of_point: dict[str, Callable] = {}
        self.given: dict[str, Callable] = {}
        self._names: dict[int, str] = {}

    def encode(self, value: Any, where: str, owner: Any = None, static: bool = False) -> Any:
        if isinstance(value, np.generic) and static:
            value = value.item()
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            return self._array(np.asarray(value, order="C"), where)
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": str(value)}
        if type(value) is tuple:
            return [self.encode(item, f"{where}.{i}", owner, static) for i, item in enumerate(value)]
        if type(value) is dict and all(isinstance(key, str) for key in value):
            items = enumerate(value.items())
            return {"dict": {key: self.encode(item, f"{where}.{i}", owner, static) for i, (key, item) in items}}
        if (tag := tag_of(type(value))) is not None:
            return {"is": tag, "fields": self._fields(value, where, static)}
        if callable(value) and not isinstance(value, EXTENSIBLE):
            return {"function": self._function(value, owner, where)}
        name = type(value).__name__
        raise TypeError(
            f"A model file cannot hold the {name} at {where}: it holds numbers, arrays, tuples and the classes of "
            f"pdedkl. For a class of your own call pdedkl.saving.register({name!r}, {name}) first."
        )

    def _fields(self, value: Any, where: str, static: bool) -> dict[str, Any]:
        fields = dataclasses.fields(value)
        prefix = f"{where}." if where else ""
        return {
            f.name: self.encode(
                getattr(value, f.name), prefix + f.name, value, static or bool(f.metadata.get("static", False))
            )
            for f in fields
        }

    def _array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        if array.dtype != np.float64:
            raise TypeError(f"A model file holds 64-bit numbers and {where} is {array.dtype}: make it of float64.")
        self.tensors[where] = array
        return {"tensor": where, "shape": list(array.shape)}

    def _function(self, fn: Callable, owner: Any, where: str) -> str:
        if (known := self._names.get(id(fn))) is not None:
            return known
        name = name_of(fn, owner, where.rpartition(".")[2], self.functions)
        self._names[id(fn)] = name
        self.functions[name] = {"in": place_of(owner)}
        self.given[name], self.of_point[name] = fn, function_of_point(owner, fn)
        return name


class Decoder:
    """Builds the tree that an encoder described. `used` are the arrays found in it, `of_point` the functions."""

    def __init__(self, tensors: dict[str, np.ndarray], functions: dict[str, Callable]) -> None:
        self.tensors = tensors
        self.functions = functions
        self.used: set[str] = set()
        self.of_point: dict[str, Callable] = {}

    def decode(self, node: Any, where: str) -> Any:
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return tuple(self.decode(item, f"{where}.{i}") for i, item in enumerate(node))
        match node:
            case {"tensor": str(name), "shape": list(shape), **rest} if not rest:
                return self._array(name, shape, where)
            case {"is": str(tag), "fields": dict(fields), **rest} if not rest:
                return self._object(tag, fields, where)
            case {"dict": dict(items), **rest} if not rest:
                return {key: self.decode(item, f"{where}.{key}") for key, item in items.items()}
            case {"function": str(name), **rest} if not rest:
                return self._function(name, where)
            case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest and where.startswith(TOLD):
                return float(text)
        raise MisfitError(f"{where} has none of the forms of the format: {str(node)[:60]}")

    def _array(self, name: str, shape: list, where: str) -> jax.Array:
        if name not in self.tensors or name in self.used:
            raise MisfitError(
                f"{where} refers to the array {name!r}, which is {'used twice' if name in self.used else 'not there'}"
            )
        array = self.tensors[name]
        if list(array.shape) != shape:
            raise MisfitError(f"the array {name!r} needs shape {tuple(shape)} and has {array.shape}")
        if not where.startswith(REPORTED) and not np.all(np.isfinite(array)):
            raise MisfitError(f"the array {name!r} needs finite numbers and holds {_first_odd(array)}")
        self.used.add(name)
        return jnp.asarray(array)

    def _function(self, name: str, where: str) -> Callable:
        if name not in self.functions:
            raise MisfitError(f"{where} is the function {name!r}, which the list of functions does not name")
        self.of_point.setdefault(name, self.functions[name])
        return self.functions[name]

    def _object(self, tag: str, fields: dict[str, Any], where: str) -> Any:
        cls = class_of(tag)
        if cls is None and tag.startswith(OWN_TAG):
            raise NotRegisteredError(tag.removeprefix(OWN_TAG))
        if cls is None:
            raise MisfitError(f"{where} has the unknown kind {tag!r}")
        known = {field.name: field.default for field in dataclasses.fields(cls)}
        required = {name for name, default in known.items() if default is dataclasses.MISSING}
        if not required <= set(fields) <= set(known):
            raise MisfitError(f"{where} is a {cls.__name__} with fields {list(known)} and the file has {list(fields)}")
        # A field that a later version of pdedkl has added, with a default, is missing from older files.
        values = known | {name: self.decode(node, f"{where}.{name}") for name, node in fields.items()}
        check_fields(cls, values, where)
        made: Any = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        for base in cls.__mro__:
            if "__check_init__" in vars(base):
                vars(base)["__check_init__"](made)
        check_object(made, where)
        if isinstance(made, Coefficient) and self.of_point.get(name := fields["fn"].get("function", "")) is made.fn:
            self.of_point[name] = function_of_point(made, made.fn)
        return made


def _first_odd(array: np.ndarray) -> float:
    return float(array[~np.isfinite(array)][0])
