#!/usr/bin/env bash
# verify_kiln_genai.sh [MODEL_FOLDER]: checks that the sources of kiln's language models are whole and wired, that the
# package onnxruntime_genai imports, and that a model's folder is complete and makes text. Prints a line for each check;
# exit status 0 where all pass, else 1. PYTHONPATH may name an installed package; else the build tree's is used.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
model=${1:-examples/models/scripture}
python=${PYTHON:-python3}
export PYTHONPATH=${PYTHONPATH:-${KILN_BUILD:-$PWD/build/release}/python_onnxruntime_genai}
failed=()

pass() { echo "  ✓ $1"; }
fail() {
  echo "  ✗ $1"
  failed+=("$1")
}
check() {  # check TEXT COMMAND...
  local text=$1
  shift
  if "$@" >/dev/null 2>&1; then pass "$text"; else fail "$text"; fi
}

echo "1. Checking source files..."
for file in include/kiln/generate/{config,generator,language_model,search_options}.hpp include/kiln/text/tokenizer.hpp \
  include/kiln/interface/language_session.hpp include/kiln/interface/python_genai/bind.hpp \
  include/kiln/interface/python/kiln/genai.py include/kiln/interface/genai/python/onnxruntime_genai/__init__.py \
  examples/genai/python/{common,migraphx_example,model-chat,model-generate,model-qa}.py \
  examples/genai/python/{genai_config_migraphx_example.json,README_MIGRAPHX.md} docs/genai.md docs/genai.zh.md; do
  check "$file" test -f "$file"
done

echo "2. Checking integration in key files..."
check "the build makes kiln::text and kiln::generate" grep -q "include(cmake/kiln_generate.cmake)" CMakeLists.txt
check "the build makes kiln.genai" grep -q "interface/python_genai" cmake/kiln_python.cmake
check "the build makes onnxruntime_genai" grep -q "interface/genai/python/onnxruntime_genai" cmake/kiln_python.cmake
check "provider MIGraphX is known" grep -q '"MIGraphX"' include/kiln/interface/impl/language_session.ipp
check "the program has kiln genai run" grep -q "add_genai_run" examples/driver/genai.cpp
check "kiln.genai has a Generator" grep -q '"Generator"' include/kiln/interface/python/kiln/genai.py
check "README.md names docs/genai.md" grep -q "docs/genai.md" README.md

echo "3. Checking Python file syntax..."
for file in include/kiln/interface/genai/python/onnxruntime_genai/*.py include/kiln/interface/python/kiln/*genai*.py \
  examples/genai/python/*.py; do
  check "$file" "$python" -c "import ast, sys; ast.parse(open(sys.argv[1]).read())" "$file"
done

echo "4. Checking JSON file syntax..."
for file in examples/genai/python/*.json "$model/genai_config.json"; do
  check "$file" "$python" -m json.tool "$file"
done

echo "5. Checking build options..."
for option in KILN_LANGUAGE KILN_ONNX KILN_PYTHON; do
  check "option $option" grep -q "option($option " CMakeLists.txt
done

echo "6. Checking the package and the folder $model..."
"$python" examples/genai/python/check_model.py "$model" || failed+=("the package or the folder $model")

echo
if [ ${#failed[@]} -eq 0 ]; then
  echo "All checks passed."
else
  echo "Failed checks: ${#failed[@]}"
  printf '  %s\n' "${failed[@]}"
  exit 1
fi
