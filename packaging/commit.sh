#!/bin/sh
# commit.sh: prints the commit of this tree, with -modified where what is built or packaged differs from it; nothing where
# the tree is no checkout of its own, such as an unpacked archive inside another checkout.
cd "$(dirname "$0")/.." || exit
top=$(git rev-parse --show-toplevel 2>/dev/null) || exit 0
[ "$top" = "$(pwd -P)" ] || exit 0
commit=$(git rev-parse --verify --quiet HEAD) || exit 0
changed=$(git status --porcelain --untracked-files=no)$(git ls-files --others --exclude-standard .cargo crates docs examples packaging python)
echo "$commit${changed:+-modified}"
