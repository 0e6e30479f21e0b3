// Commands as the tests give them to the machine, and what must come of them.
#pragma once

#include "machine.hpp"

namespace sim {

constexpr unsigned MASK = 1, WIRE = 2;

// What the seat `s` gets for a command whose source planes are `in`.
inline Expected expected(const Seat &s, const Descriptor &d, const std::vector<std::vector<u128>> &in) {
    Expected e;
    e.digests = d.prior;
    const Ring r = d.ring;
    const unsigned me = s.seat;
    const bool sends = s.sends(d.second, me), receives = s.sends(d.second, me + 1), vouches = d.digest || d.expose;
    auto digest = [&](unsigned which, unsigned part, u128 x) {
        if (d.digest) e.digests[which] = field(e.digests[which] ^ x, s.tags[part]);
    };
    for (uint32_t i = 0; i < d.blocks; i++) {
        auto rho = [&](unsigned part, unsigned from, unsigned by) { return s.stream(part, d.round, MASK, from, by, d.first + i); };
        auto wire = [&](unsigned part, unsigned from, unsigned by) {
            return d.masked ? s.stream(part, d.round, WIRE, from, by, d.first + i) : 0;
        };
        if (d.operation == FOLD) {
            e.streams[2].push_back(add(r, in[1][i], sub(r, in[2][i], wire(2, me + 1, me + 2))));
            digest(0, 0, in[2][i]);
            u128 z1 = in[0][i];
            if (receives) {
                z1 = add(r, z1, sub(r, in[3][i], wire(1, me + 1, me + 3)));
                digest(1, 0, in[3][i]);
            }
            e.streams[1].push_back(z1);
            continue;
        }
        if (d.operation != MULTIPLY) {
            for (int k = 0; k < 3; k++)
                e.streams[k].push_back(d.operation == ADD ? add(r, in[k][i], in[3 + k][i]) : sub(r, in[k][i], in[3 + k][i]));
            continue;
        }
        u128 a = 0, b = 0, c = 0;
        for (uint32_t t = 0; t < d.terms; t++) {
            u128 x[3], y[3];
            for (int k = 0; k < 3; k++) x[k] = in[k][t * d.blocks + i], y[k] = in[3 + k][t * d.blocks + i];
            auto product = [&](int p, int q) { return mul(r, x[p], y[q]); };
            a = add(r, a, add(r, product(1, 1), add(r, product(1, 2), product(2, 1))));
            b = add(r, b, add(r, product(0, 0), add(r, product(0, 1), product(1, 0))));
            c = add(r, c, add(r, product(0, 2), product(2, 0)));
        }
        // Joint inputs: v = rho + m, with rho for the receiver's summand and m for that of the fourth.
        u128 ra = rho(2, me, me + 1), ma = sub(r, a, ra);
        u128 rb = rho(1, me + 3, me), mb = sub(r, b, rb);
        u128 rc = sends ? rho(2, me, me + 2) : rho(0, me + 2, me), mc = sub(r, c, rc);
        u128 z0 = add(r, mb, rho(0, me + 2, me + 3)), z1 = add(r, ma, rb), z2 = ra;
        z0 = add(r, z0, sends ? mc : rc);
        z2 = add(r, z2, sends ? rc : mc);
        if (!receives) z1 = add(r, z1, rho(1, me + 3, me + 1));
        e.streams[0].push_back(z0);
        e.streams[1].push_back(z1);
        e.streams[2].push_back(z2);
        e.streams[3].push_back(add(r, ma, wire(1, me, me + 1)));
        mc = add(r, mc, sends ? wire(0, me, me + 2) : wire(2, me + 2, me));
        if (sends) e.streams[4].push_back(mc);
        if (!vouches) continue;
        mb = add(r, mb, wire(0, me + 3, me));
        if (d.expose) e.streams[5].push_back(mb);
        if (d.expose && !sends) e.streams[6].push_back(mc);
        digest(0, 2, mb);
        if (!sends) digest(1, 1, mc);
    }
    return e;
}

// Source planes that a command reads.
inline unsigned planes(const Seat &s, const Descriptor &d) {
    return d.operation == FOLD ? 3 + s.sends(d.second, s.seat + 1) : 6;
}

// Where the streams out of a command lie: block addresses by stream, from its destination and message addresses.
inline uint64_t place(const Descriptor &d, unsigned stream) {
    unsigned plane = stream < 3 ? stream - (d.operation == FOLD) : stream - 3;
    return (stream < 3 ? d.destination : d.message) / 16 + uint64_t(plane) * d.blocks;
}

} // namespace sim
