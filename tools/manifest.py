"""Is a run directory whole? Every table is read and checked; one line per fault, and a non-zero exit if there is one.

    python -m tools.manifest RUN            # checks, and writes RUN/manifest.json: bytes, rows, SHA-256 of every file
    python -m tools.manifest RUN --check    # checks, and compares with the manifest that is there; writes nothing

RUN may be a URL (s3://...). The manifest is derived: it can be written again at any time, and no run needs it.
"""

from __future__ import annotations

import sys

from absl import flags

from experiments import cli


def main(argv: list[str]) -> None:
    if len(argv) != 2:
        raise ValueError("one run directory is needed: python -m tools.manifest RUN")
    from experiments import manifest, places

    root = places.place(argv[1])
    made, faults = manifest.make(root)
    if flags.FLAGS.check:
        faults += manifest.changes(root, made)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(1)
    if not flags.FLAGS.check:
        manifest.write(root, made)
    rows = [f["rows"] for f in made["files"].values() if "rows" in f]
    print(f"{root}: {len(made['files'])} files, {len(rows)} of them tables of together {sum(rows)} rows, all whole")


if __name__ == "__main__":
    flags.DEFINE_bool("check", False, "Compare with the manifest that is there, and write none.")
    cli.start(main)
