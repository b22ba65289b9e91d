#!/usr/bin/env bash
# Formatter, linter, types, all tests. Arguments go to pytest, e.g. bash tools/test.sh tests/test_scores.py
set -euo pipefail
. "$(dirname "$0")/venv.sh" .venv-test requirements-dev.txt
# A CPU build of torch is the live reference of the parity tests; without one they read committed golden arrays.
python -c 'import torch' 2>/dev/null ||
  pip install --quiet --disable-pip-version-check 'torch==2.13.0+cpu' accelerate 2>/dev/null ||
  echo "no CPU build of torch 2.13.0 among pip's sources: parity tests use the committed golden arrays"
ruff format --check .
ruff check .
mypy
exec python -m pytest -m 'not slow' -n 2 --dist loadfile "$@"
