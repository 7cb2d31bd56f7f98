#!/usr/bin/env bash
# peer.sh COMPARE FOLDER: kiln's tokenizers and Hugging Face's, in the shapes of models' files and scripture's own.
# COMPARE: the program compare_tokenizer, FOLDER: of files that are made. Exit status 77 where npm delivers no peer.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
peer=$(bash "$root/cmake/peer.sh" tokenizers) || exit $?
rm -rf "$2"
mkdir -p "$2"
python3 "$here/shapes.py" "$2"
mkdir "$2/scripture"
cp "$root/examples/models/scripture/tokenizer.json" "$2/scripture"
bad=0
for folder in "$2"/*/; do
  name=$(basename "$folder")
  # variants of one splitting are alike
  case $name in level_*) head -n 2000 "$2/lines.txt" >"$2/some.txt" ;; *) cp "$2/lines.txt" "$2/some.txt" ;; esac
  node "$here/oracle.cjs" "$peer" "$folder/tokenizer.json" "$2/some.txt" >"$2/answers"
  printf "%s: " "$name"
  "$1" "$folder" "$2/some.txt" "$2/answers" || bad=1
done
exit $bad
