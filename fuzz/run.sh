#!/usr/bin/env bash
# Runs the targets of crates/fuzzing under libFuzzer, each for FUZZ_SECONDS seconds or FUZZ_RUNS executions.
#
#   fuzz/run.sh [TARGET...]         all without a name
#   FUZZ_SECONDS=60                 seconds per target (30)
#   FUZZ_RUNS=N                     executions per target instead; "least" for what each target wants
#   FUZZ_PACK=1                     afterwards the kept corpus becomes the smallest that reaches as much
#
# Needs Rust and a C++ compiler. What is found lies in target/fuzz/found; a fixed input goes to the corpus by hand:
# copy it to target/fuzz/corpus/TARGET and run with FUZZ_PACK=1.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
into=${CARGO_TARGET_DIR:-$root/target}/fuzz
command -v "${CXX:-c++}" >/dev/null || { echo 'error: libFuzzer needs a C++ compiler; on Debian: sudo apt-get install g++' >&2; exit 1; }

# Frame pointers and symbols are not needed; the profile is that of the main workspace.
TACIT_ROOT=$root RUSTC_WRAPPER=$root/fuzz/rustc CARGO_TARGET_DIR=$into \
  cargo build --release --locked --manifest-path fuzz/Cargo.toml
cargo build --release --locked -p fuzzing
fuzz=$into/release/tacit-fuzz
tool=${CARGO_TARGET_DIR:-$root/target}/release/fuzzing

mkdir -p "$into/found"
failed=
while read -r name least; do
  if [ $# -gt 0 ]; then case " $* " in *" $name "*) ;; *) continue ;; esac; fi
  corpus=$into/corpus/$name
  mkdir -p "$corpus"
  "$tool" seeds "$name" "$corpus"
  "$tool" unpack "$name" "$corpus"
  case ${FUZZ_RUNS:-} in
    '') long="-max_total_time=${FUZZ_SECONDS:-30}" ;;
    least) long="-runs=$least" ;;
    *) long="-runs=$FUZZ_RUNS" ;;
  esac
  printf '\n== %s, %s\n' "$name" "$long"
  TACIT_FUZZ=$name "$fuzz" "$corpus" "$long" -seed="${FUZZ_SEED:-0}" -max_len=16384 -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$into/found/$name-" 2>&1 | tee "$into/$name.log" |
    grep -E 'panicked|ERROR|SUMMARY|number_of_executed|average_exec|peak_rss|Test unit' || true
  if grep -qE 'ERROR|SUMMARY: ' "$into/$name.log"; then failed="$failed $name"; fi
  if [ -n "${FUZZ_PACK:-}" ]; then
    rm -rf "$into/least/$name" && mkdir -p "$into/least/$name"
    TACIT_FUZZ=$name "$fuzz" -set_cover_merge=1 -max_len=16384 -timeout=20 -verbosity=0 "$into/least/$name" "$corpus" >/dev/null 2>&1
    "$tool" pack "$name" "$into/least/$name"
  fi
done < <("$tool" list)
if [ -n "$failed" ]; then
  echo "failed:$failed; inputs are in $into/found"
  exit 1
fi
