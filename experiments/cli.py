"""How a program fails: bad input and full disks become one line on stderr and exit code 1, never a traceback.

    if __name__ == "__main__":
        cli.start(main)

Knows: exceptions. Does not know: what the programs do. A bug (any other exception) keeps its traceback.
"""

from __future__ import annotations

import functools
import logging
import sys
import traceback
from collections.abc import Callable, Sequence

from absl import app, flags


def start(main: Callable[[list[str]], None]) -> None:
    """Runs a program: flags, then `main`; the end of the file of every program."""
    app.run(guarded(main), flags_parser=parsed)


def parsed(argv: Sequence[str]) -> list[str]:
    """Reads the flags; a flag or a config file that cannot be used ends the program with `error: ...` and code 1."""
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        lines = [text.strip() for text in str(error).splitlines() if text.strip()]
        if any(text.startswith("Traceback") for text in lines):  # a config file's, quoted by ml_collections
            lines = [lines[0], lines[-1]]
        what = " ".join(lines)
    except Exception as error:  # raised in or about the file of --config, which is the user's
        place = traceback.extract_tb(error.__traceback__)[-1]
        if isinstance(error, AttributeError) and error.args and isinstance(error.args[0], KeyError):
            what = "--config: unknown field " + " ".join(str(error.args[0].args[0]).split())  # ml_collections' way
        elif "ml_collections" in place.filename or place.filename.startswith("<"):
            what = f"--config: {line(error)}"
        else:
            what = f"--config: {place.filename}:{place.lineno}: {type(error).__name__}: {line(error)}"
    print(f"error: {what}", file=sys.stderr)
    sys.exit(1)


def guarded(main: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """Wraps a main: ValueError and OSError end the program with `error: ...` and code 1, Ctrl-C with code 130."""

    @functools.wraps(main)
    def run(argv: list[str]) -> None:
        for name in ("jax", "httpx", "httpx2"):  # no news about accelerators that are not there, nor of every call
            logging.getLogger(name).setLevel(logging.WARNING)
        try:
            main(argv)
        except (ValueError, OSError) as error:
            print(f"error: {line(error)}", file=sys.stderr)
            sys.exit(1)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            sys.exit(130)

    return run


def line(error: BaseException) -> str:
    """One line for an exception: what, and for files which."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
