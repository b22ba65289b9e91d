#!/usr/bin/env bash
# The main job on the embedded organism: from prompts to M0 and M1 beside the true values. Options pass through, e.g.
#   bash tools/demo.sh --workdir=runs/mine --config.seed=1
set -euo pipefail
. "$(dirname "$0")/venv.sh" .venv-demo requirements.txt
exec python -m experiments.monitorability --config=experiments/configs/ledger.py --workdir=runs/demo "$@"
