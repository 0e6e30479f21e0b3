# same.sh: what build.sh and wheel.sh, which read it at the root of the checkout, have alike: flags by which the bytes that a
# compiler makes do not depend on the folder, and the commit and its time.
root=$(pwd -P)
cargo=${CARGO:-cargo}
built=${CARGO_TARGET_DIR:-$root/target}
home=${CARGO_HOME:-$HOME/.cargo}

say() {
    echo "error: $1" >&2
    exit 1
}

case $root$built$home in
*[[:space:]]*) say 'the path of the checkout, the target folder or CARGO_HOME has a space, which flags of compilers do not take; move it' ;;
esac

TACIT_COMMIT=${TACIT_COMMIT:-$(packaging/commit.sh)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}
export TACIT_COMMIT SOURCE_DATE_EPOCH

# fetched TRIPLE: sources of all packages are there before their folders are named.
fetched() {
    "$cargo" fetch --locked --target "$1"
}

# flags: folders of this machine get the same names everywhere, in panics of Rust and in assertions of C. Those of
# .cargo/config.toml stay; variables that would take their place do not.
flags() {
    unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CFLAGS
    rust="--remap-path-prefix=$root=/tacit --remap-path-prefix=$built=/tacit/target"
    c="-ffile-prefix-map=$built=/tacit/target -ffile-prefix-map=$root=/tacit"
    for registry in "$home"/registry/src/*; do
        rust="$rust --remap-path-prefix=$registry=/crates"
        c="$c -ffile-prefix-map=$registry=/crates"
    done
    export CARGO_BUILD_RUSTFLAGS="$rust" CFLAGS="$c"
}
