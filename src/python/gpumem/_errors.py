"""The exceptions of gpumem."""

from __future__ import annotations


class Error(Exception):
    """What went wrong, where, and what to do about it.

    str(error) is the line that the command line prints after "gpumem: error: ".

    code: the kind of failure, as in the command line's JSON: "invalid_argument", "unknown_gpu",
        "unreadable_file", "unknown_format", "malformed_input", "unknown_layer",
        "missing_information", "overflow", "deadline_exceeded", "not_exportable".
    message: what is wrong and the remedy, without the place.
    file, line, element: the place: a path, a line from 1, a layer or a JSON pointer; None: unknown.
    exit_code: what the command line would exit with: 2, 3 or 4.
    """

    exit_code: int = 4

    code: str
    message: str
    file: str | None
    line: int | None
    element: str | None

    def __init__(
        self,
        text: str,
        code: str = "invalid_argument",
        message: str | None = None,
        file: str | None = None,
        line: int | None = None,
        element: str | None = None,
    ) -> None:
        # All of them are args, from which copy and pickle make the exception again.
        super().__init__(text, code, message, file, line, element)
        self.code = code
        self.message = text if message is None else message
        self.file = file
        self.line = line
        self.element = element

    def __str__(self) -> str:
        return str(self.args[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r}, code={self.code!r})"


class UsageError(Error):
    """A value out of range, or a name that there is not: a GPU, an optimizer, batch 0."""

    exit_code = 2


class InputError(Error):
    """A summary, profile or model that cannot be read."""

    exit_code = 3


class ExportError(InputError):
    """A PyTorch module whose graph cannot be exported: it branches on a tensor's values, calls a
    function that graph JSON has no op for, or does not run on inputs of these shapes."""


class NoEstimateError(Error):
    """An estimate that cannot be made: the summary says too little, a size does not fit 64 bits, or
    the deadline came first."""

    exit_code = 4


class LibraryMissingError(ImportError):
    """The compiled part of gpumem, libgpumem_c, cannot be loaded; the text says why."""

    def missing_name(self, name: str) -> object:
        """What the package then does with the names of all that needs it."""
        raise ImportError(
            f"gpumem.{name} needs the compiled part of gpumem (libgpumem_c), which cannot be loaded; "
            f"only gpumem.record does without: {self}"
        )


def error_of(
    exit_code: int,
    text: str,
    code: str,
    message: str,
    file: str | None,
    line: int | None,
    element: str | None,
) -> Error:
    """The exception for an error of the library."""
    kinds = {2: UsageError, 3: InputError}
    return kinds.get(exit_code, NoEstimateError)(text, code, message, file, line, element)
