#!/usr/bin/env bash
# tfjs_cases.sh PROGRAM: compares graphs of every operator with tfjs. Exit status 77 where npm does not deliver it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
modules=$(bash "$here/../../cmake/peer.sh" tensorflow)
file=$(mktemp)
trap 'rm -f "$file"' EXIT
node "$here/tfjs_cases.mjs" "$modules" "$file"
"$1" "$file" tfjs 330
