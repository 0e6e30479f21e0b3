// One lane: the vectors of FIPS 197, appendix B and C.1, and a random stream with gaps against the reference.

#include "Vaes_test.h"
#include "reference.hpp"
#include "verilated.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <random>

using namespace sim;

static u128 bytes(const char *hex) {
    u128 v = 0;
    for (int i = 15; i >= 0; i--) {
        unsigned byte;
        std::sscanf(hex + 2 * i, "%2x", &byte);
        v = v << 8 | byte;
    }
    return v;
}

static Vaes_test core;

static u128 step() {
    core.clk = 0;
    core.eval();
    core.clk = 1;
    core.eval();
    u128 y;
    std::memcpy(&y, &core.y[0], 16);
    return y;
}

static void load(u128 key) {
    std::memcpy(&core.key[0], &key, 16);
    core.load = 1;
    step();
    core.load = 0;
    while (core.busy) step();
}

int main() {
    const char *vectors[][3] = {
        {"2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"},
        {"000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"},
    };
    const int latency = 21;
    core.rst = 1;
    step();
    core.rst = 0;
    for (auto &v : vectors) {
        load(bytes(v[0]));
        u128 x = bytes(v[1]), y = 0;
        std::memcpy(&core.x[0], &x, 16);
        core.enable = 1;
        for (int i = 0; i < latency; i++) {
            y = step();
            core.enable = 0;
        }
        if (y != bytes(v[2])) return std::printf("FIPS 197: a wrong block\n"), 1;
        if (Aes(bytes(v[0])).encrypt(x) != y) return std::printf("the reference is wrong\n"), 1;
    }
    std::mt19937_64 generator(3);
    u128 key = u128(generator()) << 64 | generator();
    load(key);
    Aes aes(key);
    std::deque<u128> due;
    int blocks = 0;
    for (int i = 0; i < 4000; i++) {
        u128 x = u128(generator()) << 64 | generator();
        std::memcpy(&core.x[0], &x, 16);
        core.enable = generator() % 3 != 0;
        blocks += core.enable;
        // Where nothing goes in, zero comes out.
        due.push_back(core.enable ? aes.encrypt(x) : 0);
        u128 y = step();
        if (i < latency - 1) continue;
        if (y != due.front()) return std::printf("block %d is wrong\n", i), 1;
        due.pop_front();
    }
    std::printf("aes: FIPS 197 and %d random blocks\n", blocks);
}
