#!/usr/bin/env bash
# tflite_cases.sh PROGRAM: compares models of every operator with TFLite's interpreter. Exit status 77 where npm does not
# deliver it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
modules=$(bash "$here/../../cmake/peer.sh" tflite)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
node "$here/tflite_cases.mjs" "$modules" "$folder"
"$1" "$folder/cases" "TFLite's interpreter" 480
