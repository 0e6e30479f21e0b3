// Cycles over batch sizes, as figure 3 of the COPA paper: a batch of products of Z_2^128 at seat 0, its first half of
// blocks as one command and its second as another, as every vector is run.
#pragma once

#include "commands.hpp"

#include <cstdio>

namespace sim {

constexpr double MHZ = 275; // assumed: what the paper's accelerator reached

struct Rate {
    uint64_t cycles;
    uint64_t sent; // bits
};

// A batch in an idle machine: from the first word of its first descriptor to the last completion. `fold`: stage 2.
inline Rate batch(unsigned latency, uint32_t products, bool malicious, bool fold) {
    Machine machine(latency);
    machine.configure(0, {1, 2, 3}, {4, 5, 6});
    std::deque<Descriptor> commands;
    uint64_t sent = 0;
    uint32_t middle = (products + 1) / 2;
    auto &memory = machine.memory();
    for (bool second : {false, true}) {
        uint32_t blocks = second ? products - middle : middle;
        if (blocks == 0) continue;
        Descriptor d;
        d.operation = fold ? FOLD : MULTIPLY;
        d.masked = true, d.digest = malicious, d.second = second;
        d.blocks = d.plane = blocks;
        d.first = second ? middle : 0;
        d.source = memory.size() * 16;
        d.destination = d.source + 6ull * blocks * 16;
        d.message = d.destination + 3ull * blocks * 16;
        memory.resize(memory.size() + 13ull * blocks, 12345);
        // A of every block, C of the first half.
        sent += uint64_t(blocks) * (second ? 128 : 256);
        commands.push_back(d);
    }
    uint64_t start = machine.cycles();
    size_t open = commands.size();
    for (const Descriptor &d : commands) machine.enqueue(d);
    while (open--)
        if (machine.wait().refused) throw std::runtime_error("the bench has a wrong descriptor");
    return {machine.cycles() - start, sent};
}

inline int bench(unsigned latency) {
    std::printf("{\"assumed_mhz\": %g, \"memory_latency_cycles\": %u, \"batches\": [", MHZ, latency);
    const char *comma = "";
    for (uint32_t products = 4; products <= 65536; products *= 4)
        for (bool malicious : {false, true}) {
            Rate one = batch(latency, products, malicious, false), two = batch(latency, products, malicious, true);
            double bits = double(one.sent) / double(one.cycles);
            std::printf("%s\n  {\"products\": %u, \"security\": \"%s\", \"stage1_cycles\": %llu, \"stage2_cycles\": %llu, "
                        "\"products_per_cycle\": %.3f, \"sent_bits_per_cycle\": %.1f, \"sent_gbit_per_s\": %.2f}",
                        comma, products, malicious ? "malicious" : "semi-honest", (unsigned long long)one.cycles,
                        (unsigned long long)two.cycles, products / double(one.cycles), bits, bits * MHZ / 1000);
            comma = ",";
        }
    std::printf("\n]}\n");
    return 0;
}

} // namespace sim
