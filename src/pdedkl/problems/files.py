"""A problem in a file: Python code that defines `problem`."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import resources
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from .problem import Problem

MODULE = "pdedkl_problem_file"  # not __main__, so that code below `if __name__ == "__main__":` in the file is not run


class ProblemFileError(ValueError):
    """A problem file that defines no valid problem. The message names the file, the line and what is wrong."""

    def __init__(self, path: Path, line: int | None, what: str) -> None:
        place = f"{path}, line {line}" if line else str(path)
        super().__init__(f"{place}: {what}")
        self.path, self.line = path, line


def from_file(path: str | os.PathLike[str]) -> Problem:
    """The `problem` that a Python file defines. The file is run: it is code, not data.

    **Arguments:**

    - `path`: the file; `template()` returns one to start from.

    **Returns:** a `Problem`.

    !!! example
        ```python
        with open("my_problem.py", "w") as file:
            file.write(pk.problems.template())
        mine = pk.problems.from_file("my_problem.py")
        ```
    """
    file = Path(path)
    return _problem(file, _run(file, _compiled(file, _read(file)), beside=True))


def from_text(text: bytes, path: str | os.PathLike[str]) -> Problem:
    """Like `from_file`, for a file that was read already. It cannot import modules from the folder of the file."""
    file = Path(path)
    return _problem(file, _run(file, _compiled(file, text), beside=False))


def _problem(file: Path, names: dict[str, Any]) -> Problem:
    if "problem" not in names:
        raise ProblemFileError(file, None, "it defines no `problem`; end it with problem = pdedkl.Problem(…).")
    problem = names["problem"]
    if not isinstance(problem, Problem):
        more = "; call it: problem = problem()" if callable(problem) else ""
        raise ProblemFileError(
            file, None, f"`problem` needs to be a pdedkl.Problem and is a {type(problem).__name__}{more}."
        )
    return problem


def template(fields: bool = False) -> str:
    """A problem file to start from. It runs without changes.

    **Arguments:**

    - `fields`: whether it has several fields and nonlinear equations.

    **Returns:** the text of a Python file.

    !!! example
        ```python
        assert "problem = " in pk.problems.template()
        assert "pk.fields(" in pk.problems.template(fields=True)
        ```
    """
    name = "template_fields.py.txt" if fields else "template.py.txt"
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise ProblemFileError(file, None, "there is no such file.") from None
    except OSError as error:
        raise ProblemFileError(file, None, f"it cannot be read: {error.strerror}.") from None


def _compiled(file: Path, text: bytes) -> Any:
    try:
        return compile(text, str(file), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ProblemFileError(file, error.lineno, f"this is not valid Python: {error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ProblemFileError(file, None, f"this is not valid Python: {error or 'it is nested too deeply'}.") from None


def _run(file: Path, code: Any, beside: bool) -> dict[str, Any]:
    """Execute the code as Python executes a script. With `beside`, its folder comes first in the search path."""
    module = ModuleType(MODULE)
    module.__file__ = str(file)
    folder = str(file.resolve().parent)
    if beside:
        sys.path.insert(0, folder)
    sys.modules[MODULE] = module
    try:
        with _Reported(file):
            exec(code, module.__dict__)
    finally:
        # Functions of a module that is not in sys.modules are pickled by value, so that worker processes can load them.
        del sys.modules[MODULE]
        if beside and folder in sys.path:
            sys.path.remove(folder)
    return module.__dict__


class _Reported:
    """Turns whatever the file raises into a `ProblemFileError` that names the line in it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not isinstance(error, Exception | SystemExit):
            return
        lines = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == str(self.file)]
        first = (str(error).splitlines() or [""])[0]
        what = "it ended the program" if isinstance(error, SystemExit) else f"{type(error).__name__}: {first}"
        raise ProblemFileError(self.file, lines[-1] if lines else None, what) from error
