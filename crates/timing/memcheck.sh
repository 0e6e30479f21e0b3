#!/bin/sh
# Cargo's runner for `make constant-time`: PROGRAM FILTER OPTIONS. Runs a test program under memcheck when it has a test that
# the filter names; starting the others there would only take time.
set -eu
case $("$@" --list) in
  *': test'*) exec valgrind -q --suppressions="$(dirname "$0")/memcheck.supp" "$@" ;;
esac
