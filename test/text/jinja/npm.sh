#!/usr/bin/env bash
# Puts npm's @huggingface/jinja into build/peer and prints its module's path. Exit status 77 where npm reaches nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

version=0.5.11
module() { find -H "$PWD/build/peer/node_modules/@huggingface/jinja/dist" -name index.js -print -quit 2>/dev/null; }

# npm's folder is one for all tests: one npm at a time.
if [ -z "$(module)" ]; then
  command -v npm >/dev/null && command -v node >/dev/null || { echo "SKIPPED: npm is missing" >&2; exit 77; }
  mkdir -p build/peer
  flock build/peer npm install --prefix build/peer --ignore-scripts --no-audit --no-fund --fetch-retries=1 \
    --loglevel=error "@huggingface/jinja@$version" >&2 || {
    echo "SKIPPED: npm did not deliver @huggingface/jinja" >&2
    exit 77
  }
fi
module | grep . || { echo "SKIPPED: @huggingface/jinja holds no module" >&2; exit 77; }
