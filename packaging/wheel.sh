#!/bin/sh
# wheel.sh: builds the Python package in dist/, the same bytes in any folder. Compiler, linker, glibc and maturin must be the
# same: docs/python.md. It is built, too, where no commit is known, and its files are of 1980 then, when zips begin.
set -eu
cd "$(dirname "$0")/.."
. packaging/same.sh
triple=$(rustc -vV | sed -n 's/^host: //p')
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}

python3 -m venv "$built/maturin"
"$built/maturin/bin/pip" install --quiet --disable-pip-version-check -r python/requirements-build.txt
fetched "$triple"
"$cargo" run --release --locked -p packager -- wheel python --target "$triple" \
    --commit "${TACIT_COMMIT:-unknown}" --epoch "$SOURCE_DATE_EPOCH"
rm -f dist/tacit-*.whl
flags
# By this profile nothing is incremental; with a target, what runs while it is built has no flags of the module's.
export HOST_CC=cc HOST_CFLAGS=
cd python
CARGO_TARGET_DIR=$built "$built/maturin/bin/maturin" build --profile dist --target "$triple" --out "$root/dist" \
    --sbom-include tacit.cdx.json
[ -f "$built/$triple/dist/lib_tacit.so" ] || say "the module is not where maturin is expected to build it"
for folder in "$root" "$built" "$home"; do
    ! grep -qF "$folder" "$built/$triple/dist/lib_tacit.so" || say "the module names the folder $folder; packaging/same.sh must map it"
done
