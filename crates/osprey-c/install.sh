#!/bin/sh
# install.sh BUILT PREFIX: puts libraries, headers, the CMake package, the pkg-config file and, where it was built, the
# launcher from cargo's folder BUILT (as target/release) under PREFIX. The tree can be moved as a whole afterwards.
set -eu
if [ $# -ne 2 ] || [ ! -f "$1/libosprey_c.so" ] || [ ! -f "$1/libosprey_c.a" ]; then
    echo "usage: install.sh BUILT PREFIX, with libosprey_c.so and libosprey_c.a in BUILT (cargo build --release -p osprey-c)" >&2
    exit 2
fi
built=$1 prefix=$2
here=$(dirname "$0")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -n 1)

fill() { # template, file
    sed "s/@VERSION@/$version/g" "$1" >"$2"
    chmod 644 "$2"
}

install -d "$prefix/lib/cmake/osprey" "$prefix/lib/pkgconfig" "$prefix/include"
install -m 755 "$built/libosprey_c.so" "$prefix/lib/libosprey.so.$version"
ln -sf "libosprey.so.$version" "$prefix/lib/libosprey.so.0"
ln -sf libosprey.so.0 "$prefix/lib/libosprey.so"
install -m 644 "$built/libosprey_c.a" "$prefix/lib/libosprey.a"
install -m 644 "$here"/include/osprey.h "$here"/include/*.hpp "$prefix/include"
fill "$here/cmake/osprey-config.cmake.in" "$prefix/lib/cmake/osprey/osprey-config.cmake"
fill "$here/cmake/osprey-config-version.cmake.in" "$prefix/lib/cmake/osprey/osprey-config-version.cmake"
fill "$here/osprey.pc.in" "$prefix/lib/pkgconfig/osprey.pc"
if [ -x "$built/osprey" ]; then
    install -d "$prefix/bin"
    install -m 755 "$built/osprey" "$prefix/bin/osprey"
else
    echo "install.sh: no launcher in $built, so none is installed; cargo build --release -p launcher makes it" >&2
fi
