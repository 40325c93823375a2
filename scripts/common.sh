# Shared by the scripts: the folder of the sources, lists of packages, functions that build. Sourced by bash, not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8
# the CUDA compiler often stands outside PATH
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then PATH=$PATH:/usr/local/cuda/bin; fi

build_packages=(build-essential pkg-config meson ninja-build libuv1-dev libopenblas-dev liblapacke-dev libinih-dev libck-dev
  libxxhash-dev libdeflate-dev libcjson-dev libssl-dev libwebsockets-dev libcurl4-openssl-dev
  libarchive-dev libmosquitto-dev librabbitmq-dev librdkafka-dev libglib2.0-dev libsnappy-dev libsuitesparse-dev libprotobuf-c-dev protobuf-c-compiler esbuild scdoc)
# cmocka for unit tests; clang, with its linker and what names places in its reports, for the second compiler, the sanitizers and the fuzzers; clang-format in this version
# alone, since each
# formats otherwise; the rest are clients and tools that the tests drive.
test_packages=(libcmocka-dev clang lld llvm libclang-rt-14-dev clang-format-14 netcat-openbsd socat collectd-core systemd mandoc iproute2 nftables spin curl prometheus 'chromium-headless-shell|chromium' python3-influxdb zstd
  prometheus-alertmanager python3-aiosmtpd python3-pystache rsyslog rsyslog-gnutls python3-numpy python3-pandas mypy nodejs node-typescript mosquitto mosquitto-clients rabbitmq-server amqp-tools)
# What packages are built with (scripts/package, which checks them with lintian, too).
package_packages=(debhelper dh-python rpm pybuild-plugin-pyproject python3-all python3-build python3-setuptools python3-wheel)

apt_options=() # of install_packages, beside its own

say() { printf '\n== %s\n' "$*"; }

# Installs the missing ones of the packages named, if there is apt. ONE|OTHER: the first of them that apt has.
install_packages() {
  local missing=() package as_root=()
  for package in "$@"; do
    # shellcheck disable=SC2086 # the alternatives are words
    [[ $(dpkg-query -W -f '${Status}' ${package//|/ } 2>/dev/null) == *'ok installed'* ]] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if ! command -v apt-get >/dev/null; then
    echo "These Debian packages, or their like, are needed: ${missing[*]}" >&2
    return
  fi
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  say "installing with apt: ${missing[*]}"
  [ -n "${lists_updated:-}" ] || "${as_root[@]}" apt-get update -qq
  lists_updated=yes
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get satisfy -y -qq --no-install-recommends "${apt_options[@]}" "$(IFS=,; echo "${missing[*]}")" >/dev/null
}

# build DIR [MESON OPTION...]: configures DIR the first time, then compiles.
build() { build_suites '' "$@"; }

# Compiles targets in DIR. On a terminal one line shows the progress; elsewhere only errors are printed.
compile() {
  if [ -t 1 ]; then
    NINJA_STATUS='%f of %t, %e s: ' ninja -C "$@"
  else
    ninja --quiet -C "$@"
  fi
}

# build_suites 'SUITE...' DIR [MESON OPTION...]: the same, but only the targets that the tests of these suites need (scripts/targets).
build_suites() {
  local suites=$1 dir=$2 targets=()
  shift 2
  if [ ! -f "$dir/build.ninja" ]; then
    [ ! -t 1 ] || echo "configuring $dir"
    meson setup "$dir" "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; return 1; }
    rm -f "$dir.log"
  fi
  if [ -n "$suites" ]; then
    # shellcheck disable=SC2086 # names of suites have no blanks
    mapfile -t targets < <(scripts/targets "$dir" $suites)
    [ ${#targets[@]} -gt 0 ] || return 1
  fi
  compile "$dir" "${targets[@]}"
}
