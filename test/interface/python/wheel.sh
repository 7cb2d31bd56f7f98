#!/usr/bin/env bash
# wheel.sh PYTHON BUILD: a wheel of the build tree, installed into an environment of its own, imports and runs, and
# loads nothing beside itself, Python and the system's libraries.
set -euo pipefail
python=$1 build=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
unset PYTHONPATH
"$python" -c "import build, venv" 2>/dev/null || { echo "SKIPPED: python3-build or python3-venv is missing" >&2; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m build --wheel --no-isolation -C build-dir="$build" -o "$folder" . >"$folder/log" 2>&1 || { tail -20 "$folder/log" >&2; exit 1; }
"$python" -m venv --system-site-packages "$folder/venv"
"$folder/venv/bin/pip" install -q --no-index --no-deps "$folder"/kiln-*-manylinux_*.whl
"$folder/venv/bin/python" examples/python/mlp.py
[ ! -e "$build"/python/kiln/_genai.*.so ] || "$folder/venv/bin/python" -c "from kiln import genai
tokenizer = genai.Tokenizer(genai.Model('examples/models/scripture'))
assert tokenizer.decode(tokenizer.encode('In the beginning')) == 'In the beginning'"
! "$folder/venv/bin/python" -c "import torch" 2>/dev/null || "$folder/venv/bin/python" -c "import kiln.torch, torch
assert kiln.torch.compile(torch.nn.Linear(2, 3), torch.rand(1, 2)).report.programs == 1"
if ldd "$folder"/venv/lib/python3*/site-packages/kiln/_*.so | awk '/=> \//{print $1, $3}' | grep -v " $folder/" | grep -vE '^(libc|libm|libstdc\+\+|libgcc_s|libdl|libpthread|librt)\.so'; then
  echo "the libraries above are not in the wheel" >&2
  exit 1
fi
