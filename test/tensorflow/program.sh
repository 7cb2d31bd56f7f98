#!/usr/bin/env bash
# program.sh KILN: what the command-line program makes of frozen graphs, right and wrong.
set -euo pipefail
kiln=$1
graph=examples/models/digits/frozen_graph.pb
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
# refused NAME ARGUMENT...: exit status 2, and the error names it.
refused() {
  local name=$1 status=0
  shift
  "$kiln" run "$@" >"$work/out" 2>&1 || status=$?
  [ $status = 2 ] || fail "exit status $status of kiln run $*"
  grep -qF "$name" "$work/out" || fail "kiln run $*: no '$name' in $(cat "$work/out")"
}

"$kiln" run $graph --dim image.0=3 --output-dir "$work/all" | grep -q probabilities || fail "no output 'probabilities'"
"$kiln" run $graph --batch 2 --output-names relu0 conv1 --json >"$work/two"
grep -q '"conv1"' "$work/two" && grep -q '"relu0"' "$work/two" || fail "not the outputs asked for: $(cat "$work/two")"
"$kiln" ops --tf | grep -qx DepthwiseConv2dNative || fail "an operator is not listed"

phone=examples/models/digits/model.tflite
"$kiln" run $phone --batch 2 | grep -q 'probabilities' || fail "no output 'probabilities'"
"$kiln" run $phone --batch 2 --signature serving_default | grep -q 'probabilities' || fail "no output of the signature"
"$kiln" show $phone --batch 1 >"$work/out" || fail "$(cat "$work/out")"
"$kiln" ops --tflite >"$work/out"
grep -qx DEPTHWISE_CONV_2D "$work/out" || fail "an operator of TFLite is not listed"
"$kiln" ops --tflite --json >"$work/out"
grep -q '"operator": "CONV_2D"' "$work/out" || fail "no JSON of TFLite's operators"
head -c 20000 $phone >"$work/cut.tflite"
refused cut.tflite "$work/cut.tflite"
refused "no signature 'train', it has 'serving_default'" $phone --signature train

head -c 5000 $graph >"$work/cut.pb"
refused cut.pb "$work/cut.pb"
printf "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape {} } } }
node { name: 'y' op: 'Mystery' input: 'x' }" >"$work/unknown.pbtxt"
refused Mystery "$work/unknown.pbtxt"
mkdir "$work/saved"
touch "$work/saved/saved_model.pb"
refused "it has no graph" "$work/saved"
mkdir "$work/empty"
refused "$work/empty" "$work/empty"

mkdir "$work/model"
value() { echo "$1 { key: '$2' value { name: '$3' dtype: DT_FLOAT tensor_shape { dim { size: -1 } } } }"; }
echo "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {
  node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
  node { name: 'n' op: 'Neg' input: 'p' } node { name: 'a' op: 'Abs' input: 'n' } }
  signature_def { key: 'serving_default' value { $(value inputs x p:0) $(value outputs negative n:0) } }
  signature_def { key: 'second' value { $(value inputs x p:0) $(value outputs absolute a:0) } } }" >"$work/model/saved_model.pbtxt"
"$kiln" run "$work/model" --batch 3 --json >"$work/two"
grep -q '"negative"' "$work/two" || fail "not the outputs of serving_default: $(cat "$work/two")"
"$kiln" run "$work/model" --batch 3 --signature second --tag serve --json >"$work/two"
grep -q '"absolute"' "$work/two" || fail "not the outputs of the signature: $(cat "$work/two")"
refused "no signature 'third'" "$work/model" --batch 3 --signature third
refused "no graph with tag 'gpu'" "$work/model" --batch 3 --tag gpu
refused "are for a SavedModel" $graph --signature second

"$kiln" compile $graph -o "$work/digits.kiln" >"$work/out"
refused saved "$work/digits.kiln" --batch 2
refused saved "$work/digits.kiln" --output-names conv1
refused "TensorFlow's models" examples/models/digits/model.onnx --nchw
status=0
"$kiln" ops --markdown >"$work/out" 2>&1 || status=$?
[ $status = 2 ] || fail "exit status $status of kiln ops --markdown"
"$kiln" run "$work/digits.kiln" >"$work/out" || fail "$(cat "$work/out")"
