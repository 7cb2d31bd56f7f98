#!/usr/bin/env bash
# sdist.sh PYTHON: the source distribution holds every file of the repository that a wheel is built from, none besides,
# and CMake configures it to build the package.
set -euo pipefail
python=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
"$python" -c "import build" 2>/dev/null || { echo "SKIPPED: python3-build is missing" >&2; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m build --sdist --no-isolation -o "$folder" . >"$folder/log" 2>&1 || { tail -20 "$folder/log" >&2; exit 1; }
tar -xzf "$folder"/kiln-*.tar.gz -C "$folder"
source=$(echo "$folder"/kiln-*/)
if git rev-parse --git-dir >/dev/null 2>&1; then
  wanted=$(git ls-files --cached --others --exclude-standard CMakeLists.txt LICENSE README.md pyproject.toml cmake include)
  found=$(cd "$source" && find . -type f ! -name PKG-INFO | sed 's|^\./||')
  diff <(sort <<<"$wanted") <(sort <<<"$found") || { echo "above: < what the distribution lacks, > what only it has" >&2; exit 1; }
fi
off=$(printf -- ' -DKILN_%s=OFF' BUILD_TESTS BUILD_EXAMPLES BUILD_BENCH BUILD_DRIVER C)
# shellcheck disable=SC2086
cmake -S "$source" -B "$folder/build" -G Ninja -DKILN_PYTHON=ON -DPython3_EXECUTABLE="$python" $off >"$folder/log" 2>&1 ||
  { tail -20 "$folder/log" >&2; exit 1; }
ninja -C "$folder/build" -t inputs kiln_python_package >"$folder/inputs"
grep -q interface_python_module "$folder/inputs" || { echo "the package is not built" >&2; exit 1; }
grep "^$source" "$folder/inputs" | while read -r file; do
  [ -e "$file" ] || { echo "the build needs $file" >&2; exit 1; }
done
