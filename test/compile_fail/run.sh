#!/usr/bin/env bash
# run.sh SOURCE COMPILER...: SOURCE does not compile, and each compiler's first error contains the text that SOURCE's
# first line asks for: "// expect: text", or texts with " ... " between them. Further such lines ask for further errors,
# in their order. clang names the function that stopped a constant evaluation in a note, so its errors' notes count too.
set -euo pipefail
source_file=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

mapfile -t expected < <(sed -n '/^\/\/ expect: */!q; s|^// expect: *||p' "$source_file")
[ ${#expected[@]} != 0 ] || { echo "$source_file: the first line must be \"// expect: text\""; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0 bad=0
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || { echo "SKIPPED: $compiler is missing"; continue; }
  ran=$((ran + 1))
  limit=()
  "$compiler" --version | grep -q clang && limit=(-ferror-limit=0)
  if output=$("$compiler" "${limit[@]}" -std=c++20 -fsyntax-only -fdiagnostics-color=never -I "$root/include" "$source_file" 2>&1); then
    echo "$compiler compiles it"
    bad=1
    continue
  fi
  # one line an error; clang's with its notes
  if [ ${#limit[@]} != 0 ]; then
    errors=$(awk '/error:/ { if (line) print line; line = $0; next } line && /note:/ { line = line " " $0 }
                  END { print line }' <<<"$output")
  else
    errors=$(grep 'error:' <<<"$output")
  fi
  printf '%s\n' "${expected[@]}" >"$work/expected"
  awk -v compiler="$compiler" -v wanted="$work/expected" '
    function has(error, text,  part, n, k) {
      n = split(text, part, " [.][.][.] ")
      for (k = 1; k <= n; ++k) if (!index(error, part[k])) return 0
      return 1
    }
    BEGIN { while ((getline text <wanted) > 0) expected[++count] = text; next_one = 1 }
    { all = all $0 "\n" }
    next_one <= count && (next_one > 1 || NR == 1) && has($0, expected[next_one]) {
      print compiler " says: " expected[next_one++]
    }
    END {
      if (next_one <= count) print compiler " does not say " expected[next_one] " but:\n" all
      exit next_one <= count
    }' <<<"$errors" || bad=1
done
[ $ran != 0 ] || exit 77
exit $bad
