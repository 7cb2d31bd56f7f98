#!/usr/bin/env bash
# search.sh PROGRAM FOLDER: kiln's libonnxruntime.so.1, in FOLDER, finds the stock one in the folders that the loader looks
# into, before or behind its own, passes over itself and its copies, and names what it tried.
set -euo pipefail
program=$1 own=$2
stock=$(bash "$(dirname "${BASH_SOURCE[0]}")/../../../../cmake/peer.sh") || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset KILN_ONNXRUNTIME_LIBRARY

LD_LIBRARY_PATH=$own:$(dirname "$stock") "$program"
# another copy of kiln's library is passed over too; the plugin is named, for the copy has none beside it
cp "$own/libonnxruntime.so.1" "$work"
LD_LIBRARY_PATH=$work:$own:$(dirname "$stock") KILN_ONNXRUNTIME_EP=$own/../libkiln_onnxruntime_ep.so "$program"
LD_LIBRARY_PATH=$work:$own "$program" "$work/libonnxruntime.so.1: kiln's own library"
