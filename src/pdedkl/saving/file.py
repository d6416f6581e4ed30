"""One safetensors file: named arrays of 64-bit numbers, and a JSON header with a checksum over all of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialised

from ..files import replacing
from ..inference.memory import available_bytes
from ..parsing import parse_json

FORMAT = "pdedkl-posterior"
VERSION = 2
KEY = "pdedkl"  # the only entry of the metadata, because safetensors does not keep the order of several
SPARE_BYTES = 2**26  # a file may exceed its arrays by this; larger files are refused before arrays are read
AGAIN = "Save the posterior again, or take another copy of the file."


def write(path: Path, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write under a temporary name in the same folder, then rename, so that `path` is never a partly written file."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it before saving to it.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file to save to.")
    header = {"format": FORMAT, "version": VERSION, **header}
    header["sha256"] = checksum(header, tensors)
    with replacing(path) as file:
        file.write(serialised(tensors, metadata={KEY: json.dumps(header, ensure_ascii=False, allow_nan=False)}))


def checksum(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(json.dumps([name, str(array.dtype), array.shape]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def read_header(path: Path) -> dict[str, Any]:
    with _opened(path) as file:
        return _header_of(file, path)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays, after verifying the checksum."""
    with _opened(path) as file:
        header = _header_of(file, path)
        _check_size(path, header)
        names = list(file.keys())
        for name in names:
            if (kind := file.get_slice(name).get_dtype()) != "F64":
                raise ValueError(f"The array {name!r} of {path} needs 64-bit numbers, F64, and has {kind}. {AGAIN}")
        tensors = {name: file.get_tensor(name) for name in names}
    expected = header.pop("sha256", None)
    if checksum(header, tensors) != expected:
        raise ValueError(f"The contents of {path} do not match their checksum: the file was damaged or edited. {AGAIN}")
    return header, tensors


def _check_size(path: Path, header: dict[str, Any]) -> None:
    """Refuse a file that is larger than what its header describes, or than the memory, before its arrays are read."""
    needed = 8 * sum(math.prod(shape) for shape in _shapes(header))
    size, free = path.stat().st_size, available_bytes()
    if size > needed + SPARE_BYTES:
        raise ValueError(
            f"{path} has {size / 2**30:.1f} GiB and its header describes {needed / 2**30:.1f} GiB of arrays: the file "
            f"was damaged or edited. {AGAIN}"
        )
    if free is not None and needed > free:
        raise ValueError(
            f"{path} holds {needed / 2**30:.1f} GiB of numbers, and {free / 2**30:.1f} GiB of memory are free: load it "
            "on a machine with more memory."
        )


def _shapes(header: dict[str, Any]) -> Iterator[list[int]]:
    """The shapes of all arrays that a header describes."""
    left: list[Any] = [header]
    while left:
        match left.pop():
            case {"tensor": str(), "shape": list(shape)} if all(type(size) is int and size >= 0 for size in shape):
                yield shape
            case dict(node):
                left.extend(node.values())
            case list(node):
                left.extend(node)


def _opened(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {path}: check the name, and the folder it is relative to.")
    if not path.is_file():
        raise ValueError(f"Expected a model file and {path} is a folder: give the name of a file in it.")
    try:
        return safe_open(path, framework="numpy")
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a model file, or was cut short: expected a complete safetensors file, and found {error}. "
            "Give a file that posterior.save(path) has written."
        ) from None


def _header_of(file: Any, path: Path) -> dict[str, Any]:
    text = (file.metadata() or {}).get(KEY)
    if text is None:
        raise ValueError(
            f"{path} is a safetensors file of something else: it has no entry {KEY!r} in its metadata. "
            "Give a file that posterior.save(path) has written."
        )
    try:
        header = parse_json(text, f"The header of {path}")
    except ValueError as error:
        raise ValueError(f"{error} {AGAIN}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"The header of {path} does not say that its format is {FORMAT!r}. {AGAIN}")
    version = header.get("version")
    if type(version) is int and version > VERSION:
        raise ValueError(
            f"{path} has format version {version}, from pdedkl {header.get('pdedkl')}, and this pdedkl reads "
            f"version {VERSION}: update pdedkl to load it."
        )
    if type(version) is not int or version < 1:
        raise ValueError(f"{path} needs the format version {VERSION} and has {version!r}. {AGAIN}")
    if version < VERSION:
        raise ValueError(
            f"{path} has format version {version}, from pdedkl {header.get('pdedkl')}, and this pdedkl reads version "
            f"{VERSION}: error bars are calibrated in another way now. Solve again, with fit or pdedkl solve, or load "
            "the file with the pdedkl that wrote it."
        )
    return header
