#!/usr/bin/env bash
# Lines of decoders that no input of a corpus reaches, as `file: lines`: seeds, kept corpora, and target/fuzz/corpus where it is.
#
#   fuzz/coverage.sh [FILE...]      the files of fuzz/decoders without a name
#
# Needs `rustup component add llvm-tools`. A line counts as reached when any copy of its code ran.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
into=${CARGO_TARGET_DIR:-$root/target}/fuzz-coverage
tools=$(dirname "$(rustc --print target-libdir)")/bin
[ -x "$tools/llvm-cov" ] || { echo 'error: there is no llvm-cov; run: rustup component add llvm-tools' >&2; exit 1; }

LLVM_PROFILE_FILE=$into/build-%p.profraw TACIT_ROOT=$root TACIT_COVERAGE=1 RUSTC_WRAPPER=$root/fuzz/rustc \
  CARGO_TARGET_DIR=$into cargo build --release --locked -p fuzzing
tool=$into/release/fuzzing
export LLVM_PROFILE_FILE=$into/one.profraw
rm -f "$into"/*.profraw "$into"/*.profdata
while read -r name _; do
  inputs=$into/inputs/$name
  rm -rf "$inputs"
  "$tool" seeds "$name" "$inputs"
  "$tool" unpack "$name" "$inputs"
  kept=${CARGO_TARGET_DIR:-$root/target}/fuzz/corpus/$name
  for folder in "$inputs" "$kept"; do
    [ -d "$folder" ] || continue
    find "$folder" -type f | head -n "${INPUTS:-3000}" | xargs "$tool" play "$name" >/dev/null
    [ -f "$into/all.profdata" ] && before=$into/all.profdata || before=
    "$tools/llvm-profdata" merge -sparse "$into/one.profraw" $before -o "$into/next.profdata"
    mv "$into/next.profdata" "$into/all.profdata"
  done
done < <(LLVM_PROFILE_FILE=/dev/null "$tool" list)

if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(grep -v '^#' fuzz/decoders); fi
"$tools/llvm-cov" export -format=lcov -instr-profile="$into/all.profdata" "$tool" > "$into/all.lcov"
# One line per file: how many lines have code, how many were reached, and which were not.
awk -v wanted="$(printf '%s\n' "${files[@]}")" -v root="$root/" '
  BEGIN { n = split(wanted, list, "\n"); for (i = 1; i <= n; i++) want[list[i]] = 1 }
  /^SF:/ { file = substr($0, 4); sub(root, "", file) }
  /^DA:/ && (file in want) {
    split(substr($0, 4), da, ","); key = file SUBSEP da[1]
    if (!(key in hits) || da[2] + 0 > hits[key]) hits[key] = da[2] + 0
    if (da[1] + 0 > last[file]) last[file] = da[1] + 0
  }
  END {
    for (i = 1; i <= n; i++) {
      file = list[i]; lines = 0; reached = 0; text = ""; from = 0
      for (l = 1; l <= last[file] + 1; l++) {
        there = ((file SUBSEP l) in hits)
        if (there) { lines++; if (hits[file, l] > 0) reached++ }
        if (there && hits[file, l] == 0) { if (!from) from = l; to = l }
        else if (from && (there || l > last[file])) { text = text " " from (to > from ? "-" to : ""); from = 0 }
      }
      printf "%s %d of %d:%s\n", file, reached, lines, text
    }
  }' "$into/all.lcov"
