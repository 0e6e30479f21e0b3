#!/bin/sh
# build.sh: builds tacit and osprey as static programs, the same bytes in any folder; then, unless
# it is called with --programs, their packages in dist/. The compiler must be the same: docs/install.md.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd -P)
cargo=${CARGO:-cargo}
cpu=$(uname -m)
triple=$cpu-unknown-linux-musl
built=${CARGO_TARGET_DIR:-$root/target}

say() {
    echo "error: $1" >&2
    exit 1
}

case $root$built in *[[:space:]]*) say 'the path of the checkout has a space, which flags of C compilers do not take; move it' ;; esac
command -v musl-gcc >/dev/null || say 'there is no musl-gcc; on Debian: sudo apt-get install musl-tools'
sysroot=$(rustc --print sysroot)
[ -d "$sysroot/lib/rustlib/$triple" ] || say "Rust has no library for $triple; with rustup: rustup target add $triple"

TACIT_COMMIT=${TACIT_COMMIT:-$(packaging/commit.sh)}
[ -n "$TACIT_COMMIT" ] || say 'packages name a commit, and this folder is no checkout; say TACIT_COMMIT=HASH SOURCE_DATE_EPOCH=SECONDS'
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}
[ -n "$SOURCE_DATE_EPOCH" ] || say 'packages bear the time of the commit; say SOURCE_DATE_EPOCH=SECONDS since 1970'
export TACIT_COMMIT SOURCE_DATE_EPOCH

# Sources of all packages are there before their folders are named.
"$cargo" fetch --locked --target "$triple"

# Folders of this machine get the same names everywhere: in panics of Rust, in assertions of C.
separator=$(printf '\037')
home=${CARGO_HOME:-$HOME/.cargo}
rust="--remap-path-prefix=$built=/tacit/target${separator}--remap-path-prefix=$root=/tacit"
c="-ffile-prefix-map=$built=/tacit/target -ffile-prefix-map=$root=/tacit"
for registry in "$home"/registry/src/*; do
    rust="$rust${separator}--remap-path-prefix=$registry=/crates"
    c="$c -ffile-prefix-map=$registry=/crates"
done

programs() {
    unset RUSTFLAGS CFLAGS
    export CARGO_ENCODED_RUSTFLAGS="$rust" CC=musl-gcc CFLAGS="$c"
    # What runs while the programs are built takes the compiler of this machine.
    export HOST_CC=cc HOST_CFLAGS=
    "$cargo" build --locked --profile dist --target "$triple" -p cli -p launcher
}

(programs)
if [ "${1:-}" = --programs ]; then
    exit
fi
"$cargo" run --release --locked -p packager -- programs "$built/$triple/dist" dist --target "$triple" \
    --commit "$TACIT_COMMIT" --epoch "$SOURCE_DATE_EPOCH" --unnamed "$root" --unnamed "$built" --unnamed "$home"
