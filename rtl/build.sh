#!/bin/sh
# build.sh TARGET WHAT...: verilates and compiles into TARGET/rtl. WHAT: simulator, mul, aes, gf.
# One thread and -O1: the build takes longer than the simulations it is for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$1
shift
mkdir -p "$target/rtl"
target=$(cd "$target/rtl" && pwd)
cd "$here"

# build NAME TOP CPP [SV...]
build() {
    name=$1 top=$2 cpp=$3
    shift 3
    verilator --cc --exe --build -j 2 -O3 --x-assign fast --x-initial fast --noassert \
        -CFLAGS '-O1 -std=c++17' -MAKEFLAGS 'OPT_FAST=-O1 OPT_SLOW=-O0 -s' \
        --top-module "$top" --prefix "V$top" --Mdir "$target/$name.build" -o "../$name" sim/verilator.vlt -f sources.list "$@" "$here/sim/$cpp" \
        >"$target/$name.log" 2>&1 || { cat "$target/$name.log" >&2; exit 1; }
}

for what in "$@"; do
    case $what in
    simulator) build tacit-rtl-sim accel_core simulator.cpp ;;
    mul) build test-mul mul_ring test_mul.cpp ;;
    aes) build test-aes aes_test test_aes.cpp sim/aes_test.sv ;;
    gf) build test-gf gf_digest test_gf.cpp ;;
    *) echo "error: $what: say simulator, mul, aes or gf" >&2; exit 2 ;;
    esac
done
