#!/usr/bin/env bash
# symbols.sh LIBRARY: the library exports the functions that symbols.txt lists, those that its headers declare, and no
# other symbol; its name is GenAI's.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
headers=$here/../../../include/kiln/interface/genai/include
exported=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | LC_ALL=C sort)
status=0
diff "$here/symbols.txt" <(printf '%s\n' "$exported") || { echo "exports (>) differ from symbols.txt (<)"; status=1; }
declared=$(cat "$headers"/ort_genai_c*.h | tr '\n' ' ' | grep -oE 'OGA_API_CALL +Oga[A-Za-z_]+' | awk '{print $2}' | LC_ALL=C sort)
diff <(printf '%s\n' "$declared") <(printf '%s\n' "$exported") || { echo "exports (>) differ from the headers (<)"; status=1; }
soname=$(objdump -p "$1" | awk '/SONAME/ {print $2}')
echo "$(grep -c . <<<"$exported") functions, soname $soname"
[ "$soname" = libonnxruntime-genai.so ] || status=1
exit $status
