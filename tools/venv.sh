# Sourced: makes the virtual environment $1 from the requirements file $2 once per content of that file, and enters it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=$1 requirements=$2
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or later is needed ($("$python" --version)); set PYTHON=..." >&2; exit 1; }
stamp=$venv/.$(cat requirements.txt "$requirements" | sha256sum | cut -c1-16)
if [ ! -e "$stamp" ]; then
  echo "installing $requirements into $venv"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  touch "$stamp"
fi
PATH=$PWD/$venv/bin:$PATH
