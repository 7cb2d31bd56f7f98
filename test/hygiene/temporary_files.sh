#!/usr/bin/env bash
# temporary_files.sh [FOLDER]: tests write into folders of support/temporary_folder.hpp alone, since cases run side by
# side. fuzz/ keeps the file of a failure.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

if grep -rnE --include='*.[ch]pp' 'temp_directory_path|TempDir\(\)|mkdtemp|mkstemp|tmpnam|KILN_BINARY_DIR.*("test"|/test/[a-z_]+\.[^s])' . |
  grep -v '^\./\(support/temporary_folder\.hpp\|fuzz/\)'; then
  echo "the lines above name files that other cases may have: write into a kiln::test::temporary_folder"
  exit 1
fi
