// Whole commands through the ring, several at a time, with every stream standing still at random, against the reference.

#pragma once

#include "commands.hpp"

#include <cstdio>
#include <random>

namespace sim {

static std::mt19937_64 generator(1);
static u128 number() { return u128(generator()) << 64 | generator(); }

struct Job {
    Descriptor descriptor;
    Expected expected;
    bool sensible;
};

// A random command, its planes in memory.
static Job job(const Seat &seat, Machine &machine, uint16_t id) {
    Descriptor d;
    d.operation = Operation(generator() % 4);
    d.ring = Ring(generator() % 3);
    d.masked = generator() % 2, d.digest = generator() % 2, d.expose = generator() % 2, d.second = generator() % 2;
    d.id = id;
    d.blocks = uint32_t(generator() % 3 ? 1 + generator() % 9 : 1 + generator() % 300);
    d.terms = d.operation == MULTIPLY ? uint32_t(generator() % 2 ? 1 : 1 + generator() % 7) : 1;
    d.first = generator(), d.round = generator() >> 16;
    d.prior = {number(), number()};
    d.plane = d.blocks * d.terms + uint32_t(generator() % 3);
    // Streams wrap at 2^64 in hardware; the host never gets there.
    d.first >>= 1;
    std::vector<std::vector<u128>> in;
    auto &memory = machine.memory();
    d.source = memory.size() * 16;
    for (unsigned p = 0; p < planes(seat, d); p++) {
        in.emplace_back();
        for (uint32_t i = 0; i < d.plane; i++) {
            u128 v = number();
            // Carries and borrows over all limbs.
            if (generator() % 8 == 0) v = generator() % 2 ? ~u128(0) - generator() % 3 : generator() % 3;
            memory.push_back(v);
            in.back().push_back(v);
        }
    }
    d.destination = memory.size() * 16;
    memory.resize(memory.size() + 3ull * d.blocks);
    d.message = memory.size() * 16;
    memory.resize(memory.size() + 4ull * d.blocks);
    return {d, expected(seat, d, in), true};
}

static int play(unsigned seat_number, unsigned stall, unsigned commands) {
    Seat seat{seat_number, {number(), number(), number()}, {number(), number(), number()}};
    Machine machine(unsigned(generator() % 40), stall);

    // Before it is configured, and what makes no sense.
    auto refused = [&](const Descriptor &d) {
        machine.enqueue(d);
        Completion c = machine.wait();
        return c.refused && c.id == d.id;
    };
    Descriptor plain;
    plain.blocks = 1, plain.id = 77;
    if (!refused(plain)) return std::printf("a command before the keys ran\n"), 1;
    machine.configure(seat.seat, seat.keys, seat.tags);
    Descriptor none = plain, sums = plain, elements = plain;
    none.blocks = 0, sums.terms = 2, elements.ring = Ring(3);
    if (!refused(none) || !refused(sums) || !refused(elements)) return std::printf("nonsense ran\n"), 1;

    std::deque<Job> open;
    unsigned sent = 0, done = 0;
    while (done < commands) {
        if (sent < commands && machine.ring_has_room() && generator() % 4) {
            Job j = job(seat, machine, uint16_t(sent));
            if (generator() % 10 == 0) j.descriptor.terms = 0, j.sensible = false;
            machine.enqueue(j.descriptor);
            open.push_back(j);
            sent++;
            continue;
        }
        if (open.empty()) continue;
        Completion c = machine.wait();
        Job j = open.front();
        open.pop_front();
        const Descriptor &d = j.descriptor;
        done++;
        auto fail = [&](const char *what) {
            return std::printf("seat %u, stalls %u/256, command %u (operation %u, ring %u, %u blocks, %u terms, flags %u%u%u%u): %s\n",
                               seat.seat, stall, d.id, d.operation, d.ring, d.blocks, d.terms, d.masked, d.digest, d.expose,
                               d.second, what), 1;
        };
        if (c.id != d.id) return fail("out of order");
        if (c.refused == j.sensible) return fail("refused or not");
        if (!j.sensible) continue;
        // At completion everything has arrived.
        for (unsigned s = 0; s < Machine::OUTPUTS; s++)
            for (size_t i = 0; i < j.expected.streams[s].size(); i++)
                if (machine.memory()[place(d, s) + i] != j.expected.streams[s][i]) {
                    std::printf("stream %u, block %zu: ", s, i);
                    return fail("a wrong result");
                }
        if (d.digest && d.operation >= MULTIPLY) {
            bool has_c = d.operation == FOLD ? seat.sends(d.second, seat.seat + 1) : !seat.sends(d.second, seat.seat);
            if (c.digests[0] != j.expected.digests[0]) return fail("a wrong digest of A");
            if (has_c && c.digests[1] != j.expected.digests[1]) return fail("a wrong digest of C");
        }
    }
    return 0;
}

inline int test_core() {
    unsigned runs = 0;
    for (unsigned seat = 0; seat < 4; seat++)
        for (unsigned stall : {0u, 40u, 128u, 230u}) {
            if (play(seat, stall, 60)) return 1;
            runs++;
        }
    std::printf("core: %u runs of 60 commands agree with the reference\n", runs);
    return 0;
}

} // namespace sim
