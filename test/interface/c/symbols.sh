#!/usr/bin/env bash
# symbols.sh LIBRARY [--fix]: the library exports the symbols that symbols.txt lists, with their versions, and no other;
# each is a function that kiln.h, or a part of it, declares. --fix writes the list anew: what it had and has no longer broke the ABI.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
headers=$here/../../../include/kiln/interface/c
exported=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | LC_ALL=C sort)
[ "${2:-}" != --fix ] || printf '%s\n' "$exported" >"$here/symbols.txt"
status=0
diff "$here/symbols.txt" <(printf '%s\n' "$exported") || { echo "exports (>) differ from symbols.txt (<)"; status=1; }
declared=$(cat "$headers"/*.h | tr '\n' ' ' | grep -oE 'KILN_API [^(]*\(' | grep -oE 'kiln_[a-z0-9_]+\(' | tr -d '(' | LC_ALL=C sort)
diff <(printf '%s\n' "$declared") <(sed 's/@.*//' <<<"$exported") || { echo "exports (>) differ from kiln.h (<)"; status=1; }
echo "$(grep -c . <<<"$exported") symbols"
exit $status
