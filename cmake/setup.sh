# Shared by test/run.sh and examples/run.sh: sourced with bash, from anywhere; leaves the shell in the repository's root.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages="g++ cmake ninja-build libboost1.81-dev libeigen3-dev libonnx-dev libprotobuf-dev protobuf-compiler
  libfmt-dev libcli11-dev nlohmann-json3-dev libre2-dev libpcre2-dev libicu-dev libxxhash-dev pybind11-dev python3-dev
  libjpeg62-turbo-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev libflatbuffers-dev libcpp-httplib-dev
  libssl-dev prometheus-cpp-dev libgrpc++-dev protobuf-compiler-grpc"
test_packages="git clang-16 clang-tidy-16 libclang-rt-16-dev clang-format-14 libonnx-testdata libgtest-dev libgmock-dev
  libbenchmark-dev libamdhip64-dev pkg-config valgrind python3-numpy mypy python3-build python3-wheel python3-setuptools
  python3-venv python3-jinja2 python3-onnx python3-torch python3-torchvision sentencepiece"

# install_missing PACKAGE...: asks apt-get only for what is not there.
install_missing() {
  local missing="" package
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "kiln: no apt-get here; these Debian packages, or their like, must be present: $*" >&2
    return 0
  fi
  for package in "$@"; do
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
      "install ok installed") ;;
      *) missing="$missing $package" ;;
    esac
  done
  [ -n "$missing" ] || return 0
  echo "kiln: installing$missing" >&2
  local as_root=""
  [ "$(id -u)" = 0 ] || as_root=sudo
  # shellcheck disable=SC2086
  $as_root apt-get update -qq
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
}

# Compiling the heaviest units takes about 1.5 GiB each.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}
