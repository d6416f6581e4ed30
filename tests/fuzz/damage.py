"""Ways to damage files: bytes, trees of JSON, arrays. All are drawn from a generator, so a case can be repeated."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from watch import watched

SEED = int(os.environ.get("PDEDKL_FUZZ_SEED", "0"))
CASES = int(os.environ.get("PDEDKL_FUZZ_CASES", "1600"))  # of all fuzzers together, in equal parts
FUZZERS = ("model", "csv", "npz", "parquet", "checkpoint", "search", "config", "command line")

# Pieces that mean something in one of the formats.
TOKENS = [
    b"", b"\x00", b"\xff" * 8, b"\x00" * 64, b"\n", b"\r", b",", b";", b'"', b"'", b"\t", b"{", b"}", b"[" * 300, b"]",
    b"nan", b"inf", b"-1e999", b"1_0", b"0x10", b"1e308", b"\xef\xbb\xbf", b"\xfe\xff", b"PK\x05\x06", b"PK\x01\x02",
    b"\x93NUMPY", b"PAR1", b"null", b"true", b"NaN", "é\u2028".encode(), b"\xed\xa0\x80", b"../../../etc/passwd",
    b"__import__('os').abort()", b"9" * 5000, b"F32", b"-0",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, -(2**70), 0.0, 0.5, -0.1, 1e-320, 1e308, -1e308, "", "x", "u",
    "é", "\x00", "../x", "a/b", "nan", "[/red]", "$x^$", "dense", "linear", [], {}, [[]], [None], [1, 2], ["x"],
    {"x": 1}, {"float": "nan"}, {"float": "inf"}, {"tensor": "alpha", "shape": [8]}, {"is": "posterior", "fields": {}},
    {"is": "os.system", "fields": {}}, {"function": "abort"}, {"dict": {}}, "x" * 3000,
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-320, 1e308, -1e308, 1e160, 800.0, -800.0, 1e30]


def generator(kind: str, number: int) -> np.random.Generator:
    return np.random.default_rng([SEED, FUZZERS.index(kind), number])


def choose(rng: np.random.Generator, items: Any) -> Any:
    items = list(items)
    return items[int(rng.integers(len(items)))]


def damaged_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three of: bits flipped, bytes set, cut, zeroed, repeated, moved, or replaced by a token."""
    out = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(out) + 1))
        length = int(min(2 ** rng.uniform(0, 12), len(out) - at))
        part = bytes(out[at : at + length])
        match int(rng.integers(9)):
            case 0 if out:
                out[at % len(out)] ^= 1 << int(rng.integers(8))
            case 1 if out:
                out[at % len(out)] = int(rng.integers(256))
            case 2:
                del out[at:]
            case 3:
                del out[at : at + length]
            case 4:
                out[at : at + length] = bytes(length)
            case 5:
                out[at:at] = part
            case 6:
                to = int(rng.integers(len(out) + 1))
                out[to : to + length] = part
            case 7:
                out[at : at + int(rng.integers(9))] = choose(rng, TOKENS)
            case _:
                out[at:at] = rng.bytes(int(rng.integers(1, 40)))
    return bytes(out)


def places(tree: Any, path: tuple = ()) -> Iterator[tuple]:
    """The paths to all nodes of a tree of dictionaries and lists, but its root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree: Any, path: tuple) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def damaged_tree(tree: Any, rng: np.random.Generator) -> Any:
    """A copy of a tree with a node replaced, removed, repeated, renamed, nested, or exchanged with another one."""
    out = copy.deepcopy(tree)
    for _ in range(int(rng.integers(1, 3))):
        known = list(places(out))
        if not known:
            return choose(rng, VALUES)
        *above, key = choose(rng, known)
        parent = at(out, tuple(above))
        match int(rng.integers(7)):
            case 0 | 1:
                parent[key] = copy.deepcopy(choose(rng, VALUES))
            case 2:
                del parent[key]
            case 3 if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
            case 3:
                parent[choose(rng, ("x", "", "é", "fields", f"{key}2"))] = parent.pop(key)
            case 4:
                parent[key] = copy.deepcopy(at(out, choose(rng, known)))
            case 5:
                for _ in range(int(rng.integers(1, 400))):
                    parent[key] = [parent[key]]
            case _ if isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
                parent[key] = parent[key] * choose(rng, (-1, 2, 0.5)) + choose(rng, (-1, 0, 1))
            case _:
                parent[key] = choose(rng, VALUES)
    return out


def damaged_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers replaced, an axis cut, added or turned, another kind."""
    out = np.array(array)
    match int(rng.integers(7)):
        case 0 | 1 if out.size and out.dtype.kind == "f":
            out.reshape(-1)[int(rng.integers(out.size))] = choose(rng, NUMBERS)
        case 2 if out.dtype.kind == "f":
            out[...] = choose(rng, NUMBERS)
        case 3 if out.ndim and len(out):
            out = out[:-1].copy()
        case 4:
            out = out[None].copy()
        case 5 if out.ndim == 2:
            out = np.ascontiguousarray(out.T)
        case _:
            out = np.asarray(choose(rng, (np.zeros(0), np.zeros(()), np.ones(3), np.asarray("text"), np.arange(3))))
    return out


def fuzz(kind: str, make: Callable[[np.random.Generator], Any], path: Path, use: Callable[[Any], Any]) -> int:
    """Use what `make` gives, for this fuzzer's share of cases; how many were refused.

    Bytes are written into the file, and used by its path. A case that ends in any other way than by working or by a
    documented error is kept beside the file and reported.
    """
    refused, failures = 0, []
    for number in range(max(1, CASES // len(FUZZERS))):
        content = make(generator(kind, number))
        if isinstance(content, bytes):
            path.write_bytes(content)
        with watched(path) as outcome:
            use(path if isinstance(content, bytes) else content)
        refused += outcome.error is not None
        if outcome.wrong and isinstance(content, bytes):
            kept = path.with_name(f"{kind}-{number}{path.suffix}")
            kept.write_bytes(content)
            content = f"kept as {kept}"
        if outcome.wrong:
            failures.append(f"case {number} of seed {SEED}, {str(content)[:300]}: {outcome.wrong}")
    assert not failures, f"{len(failures)} cases, such as\n" + "\n".join(failures[:8])
    return refused
