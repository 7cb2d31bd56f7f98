#!/usr/bin/env bash
# The picture and the table of docs/architecture.md name every folder of include/kiln, and no other; the table lists
# them in the order of the layers that test/hygiene/layers.sh enforces; files that it names exist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

page=docs/architecture.md
status=0
folders=$(find include/kiln -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort)
picture=$(awk '/^<!-- picture -->$/ {on = 1} on && /^```$/ && ++n == 2 {exit} on' $page | grep -oE '\b[a-z_]+/' | tr -d / | sort -u)
[ -n "$picture" ] || { echo "$page has no picture"; exit 1; }
diff <(echo "$folders") <(echo "$picture") || { echo "$page: the picture's folders (>) are not those of include/kiln (<)"; status=1; }

rows=$(grep -E '^\| `[a-z_]+/`' $page)
listed=$(cut -d '|' -f 2 <<<"$rows" | grep -oE '[a-z_]+/' | tr -d /)
diff <(echo "$folders") <(sort <<<"$listed") || { echo "$page: the table's folders (>) are not those of include/kiln (<)"; status=1; }

last=0
for folder in $listed; do
  height=$(grep -oE "height\[\"$folder\"\] = ([0-9]+|height[^;]*= [0-9]+)" test/hygiene/layers.sh | grep -oE '[0-9]+$')
  [ "${height:-0}" -ge $last ] || { echo "$page: $folder/ stands after a layer above it"; status=1; }
  last=${height:-0}
done

while IFS='|' read -r _ names _ files _; do
  for file in $(grep -oE '[a-z_/]+\.hpp' <<<"$files"); do
    found=no
    for folder in $(grep -oE '[a-z_]+/' <<<"$names"); do [ -e "include/kiln/$folder$file" ] && found=yes; done
    [ $found = yes ] || { echo "$page: no $file in $names"; status=1; }
  done
done <<<"$rows"
exit $status
