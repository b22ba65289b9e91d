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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import app, flags
from ml_collections import config_flags

from experiments.configs.base import check

if TYPE_CHECKING:
    from experiments.rundir import Terms

LESS = "what is on disk is kept; fewer chains in flight (--config.slots) or --config.dtype=bfloat16 need less"


def start(main: Callable[[list[str]], None]) -> None:
    """Runs a program: flags, then `main`; the end of the file of every program."""
    app.run(guarded(main), flags_parser=parsed)


def define_run_flags() -> None:
    """--config and --workdir, for programs that make or continue a run; called where the file is the program."""
    config_flags.DEFINE_config_file("config", None, "The run's config, e.g. experiments/configs/ledger.py.")
    flags.DEFINE_string("workdir", None, "The run directory, a path or a URL (s3://...); an existing one is resumed.")
    flags.DEFINE_enum(
        "other_code", "refuse", ["refuse", "accept"], "What to do where the run was begun with other code than this."
    )
    flags.DEFINE_enum("share", "private", ["private", "group"], "Who may read a run that begins now.")
    define_takeover()


def define_takeover() -> None:
    """--takeover, for programs that lock a run."""
    flags.DEFINE_bool("takeover", False, "In an object store: replace the lock that a killed driver has left.")


def run_flags(argv: Sequence[str]) -> tuple[dict[str, Any], Path]:
    """The checked config and the run directory.

    Raises:
      ValueError: one of the flags is missing, an argument that is no flag, or a config that is not sound.
    """
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}; fields are set with --config.field=value")
    if flags.FLAGS.config is None or not flags.FLAGS.workdir:
        raise ValueError("--config and --workdir are needed")
    from experiments.places import place

    return check(flags.FLAGS.config), place(flags.FLAGS.workdir)


def terms() -> Terms:
    """What the flags beside --config and --workdir allow."""
    from experiments.rundir import Terms

    f = flags.FLAGS
    return Terms(f.other_code == "accept", f.takeover, f.share == "group")


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
    """Wraps a main: ValueError, OSError and a lack of memory end the program with `error: ...` and code 1, Ctrl-C with
    code 130."""

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
        except Exception as error:
            if not out_of_memory(error):
                raise
            print(f"error: out of memory: {line(error)}; {LESS}", file=sys.stderr)
            sys.exit(1)

    return run


def out_of_memory(error: BaseException) -> bool:
    """Whether the host or a device could not give the memory that was asked for (XLA has no type of its own for it)."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def line(error: BaseException) -> str:
    """One line for an exception: what, and for files which."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
