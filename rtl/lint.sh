#!/bin/sh
# Everything that Verilator can say against the core; there are no waivers.
set -eu
cd "$(dirname "$0")"
exec verilator --lint-only -Wall --top-module accel_core -f sources.list
