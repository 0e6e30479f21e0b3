#!/bin/sh
# build.sh TARGET WHAT...: verilates and compiles into TARGET/rtl. WHAT: simulator; of the tests mul, aes, gf; and
# elaborated, the simulator of the core as yosys reads it.
# One thread and -O1: the build takes longer than the simulations it is for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$1
shift
mkdir -p "$target/rtl"
target=$(cd "$target/rtl" && pwd)
cd "$here"

# build NAME TOP CPP ARGUMENT...
build() {
    name=$1 top=$2 cpp=$3
    shift 3
    verilator --cc --exe --build -j 2 -O3 --x-assign fast --x-initial fast --noassert \
        -CFLAGS '-O1 -std=c++17' -MAKEFLAGS 'OPT_FAST=-O1 OPT_SLOW=-O0 -s' \
        --top-module "$top" --prefix "V$top" --Mdir "$target/$name.build" -o "../$name" sim/verilator.vlt "$@" "$here/sim/$cpp" \
        >"$target/$name.log" 2>&1 || { cat "$target/$name.log" >&2; exit 1; }
}

for what in "$@"; do
    case $what in
    simulator) build tacit-rtl-sim accel_core simulator.cpp -f sources.list ;;
    mul) build test-mul mul_ring test_mul.cpp -f sources.list ;;
    aes) build test-aes aes_test test_aes.cpp -f sources.list sim/aes_test.sv ;;
    gf) build test-gf gf_digest test_gf.cpp -f sources.list ;;
    elaborated)
        yosys -q -p "read_verilog -sv $(tr '\n' ' ' <sources.list); hierarchy -check -top accel_core; proc; opt_clean
            write_verilog -noattr $target/elaborated.v" >"$target/elaborated.log" 2>&1 || {
            cat "$target/elaborated.log" >&2
            exit 1
        }
        # What yosys writes has warnings that the sources do not have.
        build tacit-rtl-elaborated accel_core simulator.cpp -Wno-fatal "$target/elaborated.v"
        ;;
    *) echo "error: $what: say simulator, mul, aes, gf or elaborated" >&2; exit 2 ;;
    esac
done
