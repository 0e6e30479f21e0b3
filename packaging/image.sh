#!/bin/sh
# image.sh RECIPE PROGRAM [WORD..]: builds the image of a recipe from dist/ and runs a program in it, where this machine can.
# Where it has nothing to build images by, or cannot fetch what the recipe starts from, that is said, and is no failure.
set -eu
cd "$(dirname "$0")/.."
recipe=$1
shift
image=localhost/tacit-test:$$

not_here() {
    echo "the image of $recipe is not built here: $1"
    exit 0
}

of() {
    case $tool in
    # Without a daemon; what it stores goes with this script.
    buildah) buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@" ;;
    *) "$tool" "$@" ;;
    esac
}

leave() {
    if [ "$tool" = buildah ]; then
        of rm --all >/dev/null 2>&1 || true
    else
        of rmi --force "$image" >/dev/null 2>&1 || true
    fi
    rm -rf "$store"
}

tool=
for one in buildah podman docker; do
    if command -v $one >/dev/null && $one info >/dev/null 2>&1; then
        tool=$one
        break
    fi
done
[ -n "$tool" ] || not_here 'there is no buildah, no podman, and no docker whose daemon answers'
store=$(mktemp -d)
trap leave EXIT
export BUILDAH_ISOLATION=chroot

base=$(sed -n 's/^FROM //p' "$recipe")
if [ "$base" != scratch ]; then
    why=$(of pull "$base" 2>&1 >/dev/null) || not_here "$base cannot be fetched by $tool: $(echo "$why" | tail -n 1)"
fi
of build --quiet --file "$recipe" --tag "$image" dist >/dev/null
if [ "$tool" = buildah ]; then
    of run "$(of from "$image")" -- "$@"
else
    program=$1
    shift
    of run --rm --network none --entrypoint "$program" "$image" "$@"
fi
echo "built by $tool, and run: the image of $recipe"
