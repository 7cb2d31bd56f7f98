#!/usr/bin/env bash
# ep_node.sh PROGRAM PACKAGE: a test in JavaScript of kiln's package for Node, with the onnxruntime-node that cmake/peer.sh
# fetched.
set -euo pipefail
library=$(bash "$(dirname "${BASH_SOURCE[0]}")/../../../../cmake/peer.sh") || exit 77
command -v node >/dev/null || { echo "SKIPPED: node is missing"; exit 77; }
exec node "$1" "${library%/onnxruntime-node/*}" "$2"
