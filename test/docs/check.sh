#!/usr/bin/env bash
# Code in README.md and docs/ is code that is compiled: every ```cpp, ```c, ```js and ```python block stands behind a comment that names its origin,
#   <!-- from examples/custom_op.cpp [op] -->     the lines between "// [op]" and "// [/op]" (Python: "# [op]")
#   <!-- from include/kiln/op/view/flatten.hpp -->  the whole file
# and equals it, and every link within the repository leads somewhere. With --fix the blocks are rewritten from their origins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

status=0
for page in README.md docs/*.md; do
  [ -f "$page" ] || continue
  new=$(mktemp)
  awk -v page="$page" '
    function fault(text) { print page ":" FNR ": " text > "/dev/stderr"; bad = 1 }
    # The lines of a region, without the indentation that all of them share.
    function region(file, name,   line, inside, n, i, lead, least, lines, out) {
      inside = name == ""
      while ((getline line < file) > 0) {
        if (name != "" && line ~ "^ *(//|#) \\[" name "\\]$") { inside = found = 1; continue }
        if (name != "" && line ~ "^ *(//|#) \\[/" name "\\]$") { inside = 0; continue }
        if (inside && line !~ /^[ ]*(\/\/|#) \[\/?[a-z_]+\]$/) lines[++n] = line
      }
      close(file)
      if (n == 0) { fault("nothing in " file (name == "" ? "" : " between the marks of [" name "]")); return "" }
      least = 99
      for (i = 1; i <= n; i++) if (match(lines[i], /[^ ]/) && RSTART - 1 < least) least = RSTART - 1
      for (i = 1; i <= n; i++) out = out substr(lines[i], least + 1) "\n"
      return out
    }
    /^<!-- from .* -->$/ {
      name = ""
      file = $3
      if ($4 ~ /^\[.*\]$/) name = substr($4, 2, length($4) - 2)
      wanted = region(file, name)
      expecting = 1
      print; next
    }
    /^```(cpp|c|python|js)$/ {
      if (!expecting) fault("a code block without an origin")
      print
      code = ""
      while ((getline line) > 0 && line != "```") code = code line "\n"
      if (expecting && code != wanted) { differs = 1; if (!fixing) fault("not the code in " file (name == "" ? "" : " [" name "]")) }
      printf "%s```\n", expecting && wanted != "" ? wanted : code
      expecting = 0
      next
    }
    expecting && NF { fault("a code block is missing"); expecting = 0 }
    { print }
    END { exit bad }' fixing="$([ "${1:-}" = --fix ] && echo 1)" "$page" > "$new" || status=1
  # Links within the repository lead somewhere.
  while read -r link; do
    [ -e "$(dirname "$page")/$link" ] || { echo "$page: no $link" >&2; status=1; }
  done < <(sed '/^```/,/^```/d' "$page" | grep -o ']([^)]*)' | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^https\?:' | grep .)
  if [ "${1:-}" = --fix ] && ! cmp -s "$new" "$page"; then cat "$new" > "$page"; fi
  rm -f "$new"
done
exit $status
