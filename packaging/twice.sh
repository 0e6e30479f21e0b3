#!/bin/sh
# twice.sh: builds the packages of this commit once more, in another folder with nothing built in it, and compares them with
# those in dist/.
set -eu
cd "$(dirname "$0")/.."
commit=$(packaging/commit.sh)
case $commit in
'' | *-modified)
    echo 'error: only a commit can be built twice; commit what was changed, and run make dist again' >&2
    exit 2
    ;;
esac
other=$(mktemp -d)
trap 'rm -rf "$other"' EXIT
git clone --quiet . "$other/elsewhere"
cd "$other/elsewhere"
git checkout --quiet --detach "$commit"
env -u TACIT_COMMIT -u SOURCE_DATE_EPOCH -u CARGO_TARGET_DIR packaging/build.sh
(cd dist && sha256sum --strict -c SHA256SUMS)
cmp "$OLDPWD/dist/SHA256SUMS" dist/SHA256SUMS
echo 'two builds of this commit have the same bytes'
