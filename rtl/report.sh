#!/bin/sh
# report.sh TARGET: what the core takes on a Cyclone 10 GX, the nearest family that yosys maps, beside table I of the paper.
# docs/protocols/accelerators-rtl.md says what this does not prove.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/rtl"
out=$(cd "$1/rtl" && pwd)
cd "$here"

# yosys 0.23 cannot give block memories a content, so the S-boxes stay as they are and are counted.
yosys -q -l "$out/yosys.log" -p "read_verilog -sv $(tr '\n' ' ' <sources.list)
    blackbox sbox_rom
    synth_intel_alm -family cyclone10gx -top accel_core -noiopad -noclkbuf
    tee -o $out/stat.txt stat" >"$out/yosys.out" 2>&1 || { tail -n 20 "$out/yosys.out" >&2; exit 1; }

awk '
function row(name, value) { printf "| %s | %s |\n", name, value }
/^=== / {
    block = $2
    sub(/.*\\/, "", block)
    if ($0 ~ /design hierarchy/) whole = 1
    next
}
# Cells of a block without those in it that stand for themselves.
!whole && $1 ~ /^MISTRAL_ALUT/ { own_luts[block] += $2 }
!whole && $1 == "MISTRAL_FF" { own_ffs[block] += $2 }
!whole && $1 ~ /^MISTRAL_MUL/ { own_dsps[block] += $2 }
# Cells of one kind, in the sum over the hierarchy.
whole && $1 ~ /^MISTRAL_ALUT/ { luts += $2; if ($1 == "MISTRAL_ALUT_ARITH") arith = $2; if ($1 == "MISTRAL_ALUT6") six = $2 }
whole && $1 == "MISTRAL_FF" { ffs = $2 }
whole && $1 ~ /^MISTRAL_MUL/ { dsps += $2 }
whole && $1 ~ /M20K|altsyncram/ { rams += $2 }
whole && $1 ~ /MLAB/ { mlabs += $2 }
whole && $1 == "sbox_rom" { roms = $2 }
END {
    if (luts == 0 || roms == 0) { print "error: no statistics" > "/dev/stderr"; exit 1 }
    print "| core | yosys |"
    print "|---|---|"
    row("ALUTs", luts); row("of them with six inputs", six); row("of them arithmetic", arith)
    row("ALMs, at one per LUT of six inputs and half of one per other", int(six + (luts - six + 1) / 2))
    row("flip-flops", ffs); row("DSP blocks (27 x 27)", dsps)
    row("M20K blocks, buffers", rams); row("M20K blocks, S-boxes (two ports each)", roms); row("MLAB cells of 32 bits", mlabs + 0)
    print ""
    print "| one block, without those below it | how many | ALUTs | flip-flops | DSP blocks |"
    print "|---|---|---|---|---|"
    split("accel_core aes_lane mul_ring gf_digest gf_mul", names, " ")
    split("1 8 6 2 2", numbers, " ")
    for (i = 1; i <= 5; i++)
        printf "| `%s` | %d | %d | %d | %d |\n", names[i], numbers[i], own_luts[names[i]], own_ffs[names[i]], own_dsps[names[i]]
    print ""
    print "Table I of the paper: 10,667 ALMs, 150 DSP blocks, 668 RAM blocks, 250 to 275 MHz on a Stratix 10."
}' "$out/stat.txt" | tee "$out/report.md"
