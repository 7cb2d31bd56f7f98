#!/usr/bin/env bash
# valgrind.sh PROGRAM ARGUMENT...: the program makes no wrong access and leaks nothing.
set -euo pipefail
command -v valgrind >/dev/null || { echo "SKIPPED: valgrind is missing, so leaks are not looked for"; exit 77; }
exec valgrind --quiet --suppressions="$(dirname "${BASH_SOURCE[0]}")/valgrind.supp" --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible \
  --errors-for-leak-kinds=definite,indirect,possible "$@"
