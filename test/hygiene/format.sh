#!/usr/bin/env bash
# format.sh [--fix]: kiln's sources are formatted as clang-format 14 does it with the root's .clang-format.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tool=clang-format-14
command -v $tool >/dev/null || { echo "SKIPPED: $tool is missing, so formatting is not checked"; exit 77; }

mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.hpp' '*.ipp' '*.cpp' '*.h' |
  while read -r file; do [ -f "$file" ] && echo "$file"; done)
if [ "${1:-}" = --fix ]; then
  $tool -i "${files[@]}"
  exit
fi

# One process for all; what differs is asked for file by file.
if $tool --dry-run -Werror "${files[@]}" 2>/dev/null; then
  echo "0 of ${#files[@]} files differ from what $tool writes"
  exit
fi
bad=0
for file in "${files[@]}"; do
  if ! difference=$(diff -u --label "$file" --label formatted "$file" <($tool "$file")); then
    bad=$((bad + 1))
    head -n 12 <<<"$difference"
  fi
done
echo "$bad of ${#files[@]} files differ from what $tool writes (bash test/hygiene/format.sh --fix)"
[ $bad = 0 ]
