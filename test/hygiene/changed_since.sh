#!/usr/bin/env bash
# lone_headers.sh compiles a header again after any of many files has changed, the first one of a long list, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
lone=$OLDPWD/lone_headers.sh
touch -d '1 hour ago' old
touch -d '1 minute ago' made
touch new
rules() {  # rules FIRST LAST: as compilers write them, longer than a pipe holds
  printf -- '-: %s \\\n' "$folder/$1"
  for _ in $(seq 4000); do printf ' %s \\\n' "$folder/old"; done
  printf ' %s\n' "$folder/$2"
}
failed=0
expect() {
  rules "$2" "$3" >rules.d
  local found=changed
  bash "$lone" --changed "$folder/made" "$folder/rules.d" || found=same
  [ "$found" = "$1" ] || { echo "first $2, last $3: expected $1, found $found"; failed=1; }
}
expect same old old
expect changed old new
expect changed missing old
for _ in $(seq 5); do expect changed new old; done
exit $failed
