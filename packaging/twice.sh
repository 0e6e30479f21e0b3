#!/bin/sh
# twice.sh dist|wheel: builds the packages or the wheel of this commit once more, in another folder with nothing built in it,
# and compares them with those in dist/.
set -eu
cd "$(dirname "$0")/.."
what=${1:?dist or wheel}
commit=$(packaging/commit.sh)
case $commit in
'' | *-modified)
    echo "error: only a commit can be built twice; commit what was changed, and run make $what again" >&2
    exit 2
    ;;
esac
other=$(mktemp -d)
trap 'rm -rf "$other"' EXIT
git clone --quiet . "$other/elsewhere"
cd "$other/elsewhere"
git checkout --quiet --detach "$commit"
case $what in
dist)
    env -u TACIT_COMMIT -u SOURCE_DATE_EPOCH -u CARGO_TARGET_DIR packaging/build.sh
    (cd dist && sha256sum --strict -c SHA256SUMS)
    cmp "$OLDPWD/dist/SHA256SUMS" dist/SHA256SUMS
    ;;
wheel)
    env -u TACIT_COMMIT -u SOURCE_DATE_EPOCH -u CARGO_TARGET_DIR packaging/wheel.sh
    for wheel in dist/tacit-*.whl; do
        cmp "$OLDPWD/$wheel" "$wheel"
        sha256sum "$wheel"
    done
    ;;
esac
echo 'two builds of this commit have the same bytes'
