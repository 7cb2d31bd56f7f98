#!/usr/bin/env bash
# words.sh [FOLDER...]: none of the words that retired_words.txt retires stands in include/, docs/ or README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
[ $# -gt 0 ] || set -- include docs README.md

bad=0
while IFS=$'\t' read -r words instead; do
  [[ -n $words && $words != \#* ]] || continue
  if found=$(grep -rniE --include='*.hpp' --include='*.ipp' --include='*.md' "(^|[^A-Za-z_])($words)([^A-Za-z_]|\$)" "$@"); then
    echo "write \"$instead\" here:"
    cut -c 1-160 <<<"$found" | head -n 20
    bad=$((bad + $(wc -l <<<"$found")))
  fi
done <"$here/retired_words.txt"
echo "$bad lines with retired words"
[ "$bad" = 0 ]
