"""One safetensors file: named arrays of 64-bit numbers, and a JSON header with a checksum over all of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialised

from ..files import replacing

FORMAT = "pdedkl-posterior"
VERSION = 1
KEY = "pdedkl"  # the one entry of the metadata, since safetensors keeps no order among several
AGAIN = "Save the posterior again, or take another copy of the file."


def write(path: Path, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write under a temporary name in the same folder, then rename: the old file or the new one, never half of one."""
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
    """Header and arrays, once the checksum agrees."""
    with _opened(path) as file:
        header = _header_of(file, path)
        names = list(file.keys())
        for name in names:
            if (kind := file.get_slice(name).get_dtype()) != "F64":
                raise ValueError(f"The array {name!r} of {path} needs 64-bit numbers, F64, and has {kind}. {AGAIN}")
        tensors = {name: file.get_tensor(name) for name in names}
    expected = header.pop("sha256", None)
    if checksum(header, tensors) != expected:
        raise ValueError(f"The contents of {path} do not match their checksum: the file was damaged or edited. {AGAIN}")
    return header, tensors


def _opened(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {path}: check the name, and the folder it is relative to.")
    if not path.is_file():
        raise ValueError(f"Expected a model file and {path} is a folder: give the name of a file in it.")
    try:
        return safe_open(path, framework="numpy")
    except SafetensorError as error:
        raise ValueError(
            f"{path} is no model file, or was cut short: expected a complete safetensors file, and found {error}. "
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
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The header of {path} needs to be JSON and is not: {error}. {AGAIN}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"The header of {path} does not say that its format is {FORMAT!r}. {AGAIN}")
    version = header.get("version")
    if type(version) is int and version > VERSION:
        raise ValueError(
            f"{path} is of format version {version}, from pdedkl {header.get('pdedkl')}, and this pdedkl reads up to "
            f"version {VERSION}: update pdedkl to load it."
        )
    if type(version) is not int or version < 1:
        raise ValueError(f"{path} needs a format version from 1 to {VERSION} and has {version!r}. {AGAIN}")
    return header
