"""How a program fails: bad input and full disks become one line on stderr and exit code 1, never a traceback.

    if __name__ == "__main__":
        app.run(cli.guarded(main))

Knows: exceptions. Does not know: what the programs do. A bug (any other exception) keeps its traceback.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable


def guarded(main: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """Wraps a main: ValueError and OSError end the program with `error: ...` and code 1, Ctrl-C with code 130."""

    @functools.wraps(main)
    def run(argv: list[str]) -> None:
        logging.getLogger("jax").setLevel(logging.WARNING)  # no news about accelerators that are not there
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
