// Products of the field, and digests of messages of many lengths, with gaps, one right after the other.

#include "Vgf_digest.h"
#include "reference.hpp"
#include "verilated.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

using namespace sim;

static Vgf_digest core;
static std::mt19937_64 generator(4);
static u128 number() { return u128(generator()) << 64 | generator(); }
template <class W> static void put(W &wide, u128 v) { std::memcpy(&wide[0], &v, 16); }
template <class W> static u128 get(const W &wide) {
    u128 v;
    std::memcpy(&v, &wide[0], 16);
    return v;
}

static void step() {
    core.clk = 0;
    core.eval();
    core.clk = 1;
    core.eval();
}

int main() {
    const u128 extremes[] = {0, 1, 2, ~u128(0), u128(1) << 127, u128(3) << 126, 0x87, u128(0x3f) << 121};
    std::deque<u128> due;
    core.borrow = 1;
    const int products = 20000;
    for (int i = 0; i < products; i++) {
        u128 a = generator() % 4 ? number() : extremes[generator() % 8];
        u128 b = generator() % 4 ? number() : extremes[generator() % 8];
        put(core.borrow_a, a);
        put(core.borrow_b, b);
        due.push_back(field(a, b));
        step();
        if (i < 2) continue;
        if (get(core.product) != due.front()) return std::printf("product %d is wrong\n", i), 1;
        due.pop_front();
    }
    core.borrow = 0;

    u128 h = number(), powers[5] = {1};
    for (int i = 1; i < 5; i++) powers[i] = field(powers[i - 1], h);
    struct Due {
        u128 digest;
        int at;
    };
    std::deque<Due> digests;
    int cycle = 0, messages = 0;
    auto tick = [&]() -> bool {
        step();
        cycle++;
        if (!digests.empty() && digests.front().at == cycle) {
            if (get(core.digest) != digests.front().digest) return false;
            digests.pop_front();
            messages++;
        }
        return true;
    };
    for (int message = 0; message < 3000; message++) {
        int n = message < 200 ? 1 + message % 40 : 1 + int(generator() % 12);
        bool gaps = generator() % 2;
        u128 prior = number(), sum = prior;
        for (int i = 0; i < n; i++) {
            while (gaps && generator() % 2) {
                core.active = 0;
                put(core.x, number());
                if (!tick()) return std::printf("a wrong digest\n"), 1;
            }
            u128 x = number();
            sum = field(sum ^ x, h);
            int left = n - i;
            core.active = 1;
            core.first = i == 0;
            core.fresh = i < 4;
            core.left = left <= 4 ? left : 0;
            put(core.x, x);
            put(core.prior, prior);
            put(core.power, powers[left < 4 ? left : 4]);
            if (left == 1) digests.push_back({sum, cycle + 4});
            if (!tick()) return std::printf("a wrong digest\n"), 1;
        }
    }
    core.active = 0;
    for (int i = 0; i < 8; i++)
        if (!tick()) return std::printf("a wrong digest\n"), 1;
    std::printf("gf: %d products, %d digests\n", products - 2, messages);
}
