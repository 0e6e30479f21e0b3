// The multiplier: random and extreme factors, both element sizes, changing from cycle to cycle.

#include "Vmul_ring.h"
#include "reference.hpp"
#include "verilated.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <random>

int main() {
    using namespace sim;
    Vmul_ring core;
    std::mt19937_64 generator(2);
    const u128 extremes[] = {0, 1, ~u128(0), u128(1) << 127, u128(1) << 64, (u128(1) << 64) - 1, u128(1) << 63, (u128(1) << 27) - 1};
    std::deque<u128> due;
    const int cycles = 200000, latency = 6;
    for (int i = 0; i < cycles; i++) {
        auto number = [&] {
            return generator() % 4 ? u128(generator()) << 64 | generator() : extremes[generator() % 8];
        };
        u128 a = number(), b = number();
        core.z64 = generator() & 1;
        std::memcpy(&core.a[0], &a, 16);
        std::memcpy(&core.b[0], &b, 16);
        due.push_back(mul(core.z64 ? Z64 : Z128, a, b));
        core.clk = 0;
        core.eval();
        core.clk = 1;
        core.eval();
        if (i < latency - 1) continue;
        u128 p;
        std::memcpy(&p, &core.p[0], 16);
        if (p != due.front()) return std::printf("product %d is wrong\n", i), 1;
        due.pop_front();
    }
    std::printf("mul: %d products, one per cycle\n", cycles - latency + 1);
}
