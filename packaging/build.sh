#!/bin/sh
# build.sh: builds tacit and osprey as static programs, the same bytes in any folder; then, unless
# it is called with --programs, their packages in dist/. The compiler must be the same: docs/install.md.
set -eu
cd "$(dirname "$0")/.."
. packaging/same.sh
cpu=$(uname -m)
triple=$cpu-unknown-linux-musl

command -v musl-gcc >/dev/null || say 'there is no musl-gcc; on Debian: sudo apt-get install musl-tools'
sysroot=$(rustc --print sysroot)
[ -d "$sysroot/lib/rustlib/$triple" ] || say "Rust has no library for $triple; with rustup: rustup target add $triple"
[ -n "$TACIT_COMMIT" ] || say 'packages name a commit, and this folder is no checkout; say TACIT_COMMIT=HASH SOURCE_DATE_EPOCH=SECONDS'
[ -n "$SOURCE_DATE_EPOCH" ] || say 'packages bear the time of the commit; say SOURCE_DATE_EPOCH=SECONDS since 1970'

fetched "$triple"

programs() {
    flags
    # What runs while the programs are built takes the compiler of this machine.
    export CC=musl-gcc HOST_CC=cc HOST_CFLAGS=
    "$cargo" build --locked --profile dist --target "$triple" -p cli -p launcher
}

(programs)
if [ "${1:-}" = --programs ]; then
    exit
fi
"$cargo" run --release --locked -p packager -- programs "$built/$triple/dist" dist --target "$triple" \
    --commit "$TACIT_COMMIT" --epoch "$SOURCE_DATE_EPOCH" --unnamed "$root" --unnamed "$built" --unnamed "$home"
