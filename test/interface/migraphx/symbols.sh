#!/usr/bin/env bash
# symbols.sh LIBRARY: libmigraphx_c.so.3 exports the 167 functions that migraphx.h declares, and those of
# kiln_* that it declares, and no other symbol.
set -euo pipefail
header=$(dirname "${BASH_SOURCE[0]}")/../../../include/kiln/interface/migraphx/include/migraphx/migraphx.h
exported=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | LC_ALL=C sort)
declared=$(tr '\n' ' ' <"$header" | grep -oE 'MIGRAPHX_C_EXPORT (migraphx_status|const)[^(;]*\(' | grep -oE '[a-z0-9_]+\($' | tr -d '(' | LC_ALL=C sort)
status=0
diff <(printf '%s\n' "$declared") <(printf '%s\n' "$exported") || { echo "exports (>) differ from migraphx.h (<)"; status=1; }
count=$(nm -D --defined-only "$1" | grep -c ' migraphx_')
soname=$(objdump -p "$1" | awk '/SONAME/ {print $2}')
echo "$count functions, soname $soname"
[ "$count" = 167 ] && [ "$soname" = libmigraphx_c.so.3 ] || status=1
exit $status
