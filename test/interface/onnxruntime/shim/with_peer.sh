#!/usr/bin/env bash
# with_peer.sh COMMAND...: runs it with the stock ONNX Runtime that cmake/peer.sh fetched behind kiln's library.
set -euo pipefail
library=$(bash "$(dirname "${BASH_SOURCE[0]}")/../../../../cmake/peer.sh") || exit 77
KILN_ONNXRUNTIME_LIBRARY=$library exec "$@"
