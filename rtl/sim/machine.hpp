// The accelerator under Verilator with what surrounds it: a host that configures it and fills its ring, and a memory that
// answers its requests. Every stream can be stalled at random.
#pragma once

#include "Vaccel_core.h"
#include "reference.hpp"
#include "verilated.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <vector>

namespace sim {

struct Descriptor {
    Operation operation = ADD;
    Ring ring = Z128;
    bool masked = false, digest = false, expose = false, second = false;
    uint16_t id = 0;
    uint32_t blocks = 0, terms = 1;
    uint64_t first = 0, round = 0;
    uint64_t source = 0, destination = 0, message = 0;
    uint32_t plane = 0;
    std::array<u128, 2> prior{};
};

struct Completion {
    uint16_t id;
    bool refused;
    uint32_t cycles;
    std::array<u128, 2> digests;
};

class Machine {
  public:
    static constexpr unsigned SLOTS = 8, INPUTS = 6, OUTPUTS = 7;

    // `latency`: cycles from a request to its first block. `stall`: of 256 chances, how many a stream has to stand still.
    explicit Machine(unsigned latency = 0, unsigned stall = 0)
        : core_(std::make_unique<Vaccel_core>()), latency_(latency), stall_(stall) {
        core_->rst = 1;
        for (int i = 0; i < 4; i++) edge();
        core_->rst = 0;
    }

    uint64_t cycles() const { return cycles_; }
    std::vector<u128> &memory() { return memory_; }

    void configure(unsigned seat, const std::array<u128, 3> &keys, const std::array<u128, 3> &tags) {
        for (unsigned part = 0; part < 3; part++) {
            set(part, keys[part]);
            set(4 + part, tags[part]);
        }
        set(8, seat);
    }

    bool ring_has_room() const { return ((tail_ - core_->head) & 15) < SLOTS; }

    void enqueue(const Descriptor &d) {
        if (!ring_has_room()) throw std::logic_error("the ring of descriptors is full");
        uint32_t flags = d.masked | d.digest << 1 | d.expose << 2 | d.second << 3;
        u128 w[6] = {
            u128(d.operation | d.ring << 8 | flags << 16) | u128(d.id) << 32 | u128(d.blocks) << 64 | u128(d.terms) << 96,
            u128(d.first) | u128(d.round) << 64,
            u128(d.source) | u128(d.destination) << 64,
            u128(d.message) | u128(d.plane) << 64,
            d.prior[0],
            d.prior[1],
        };
        for (unsigned i = 0; i < 6; i++) {
            core_->write = 1;
            core_->write_at = (tail_ & 7) * 8 + i;
            put(core_->write_data, w[i]);
            step();
        }
        core_->write = 0;
        tail_ = (tail_ + 1) & 15;
        core_->bell = 1;
        core_->bell_tail = tail_;
        step();
        core_->bell = 0;
        moved_ = cycles_;
    }

    // The next completion; throws when nothing moves for too long.
    Completion wait() {
        while (done_.empty()) {
            step();
            if (cycles_ - moved_ > 100000 + latency_) throw std::runtime_error("the accelerator hangs");
        }
        Completion c = done_.front();
        done_.pop_front();
        return c;
    }

    bool completed() const { return !done_.empty(); }

    // One clock cycle.
    void step() {
        offer();
        core_->clk = 0;
        core_->eval();
        accept();
        core_->clk = 1;
        core_->eval();
        cycles_++;
    }

    // Streams out that took something since the last call.
    unsigned written() {
        unsigned w = written_;
        written_ = 0;
        return w;
    }

  private:
    // A request under way: words `at + pitch * term + block`, terms innermost.
    struct Burst {
        uint64_t at;
        uint32_t blocks, terms, block, term;
        uint64_t from;
    };

    template <class W> static void put(W &wide, u128 v, unsigned lane = 0) { std::memcpy(&wide[4 * lane], &v, 16); }
    template <class W> static u128 get(const W &wide, unsigned lane = 0) {
        u128 v;
        std::memcpy(&v, &wide[4 * lane], 16);
        return v;
    }

    void edge() {
        core_->clk = 0;
        core_->eval();
        core_->clk = 1;
        core_->eval();
    }

    void set(unsigned at, u128 v) {
        core_->config_valid = 1;
        core_->config_at = at;
        put(core_->config_data, v);
        for (;;) {
            core_->clk = 0;
            core_->eval();
            bool taken = core_->config_ready;
            step();
            if (taken) break;
        }
        core_->config_valid = 0;
    }

    // xorshift: stalls repeat under a seed.
    bool chance() {
        if (stall_ == 0) return false;
        state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
        return (state_ & 255) < stall_;
    }

    void offer() {
        // What is offered stays offered until it is taken.
        for (unsigned i = 0; i < INPUTS; i++) {
            if (!(offered_ >> i & 1) && !in_[i].empty() && in_[i].front().from <= cycles_ && !chance()) {
                Burst &b = in_[i].front();
                put(core_->in_data, word(b.at + uint64_t(b.term) * b.blocks + b.block), i);
                offered_ |= 1u << i;
            }
        }
        core_->in_valid = offered_;
        unsigned ready = 0;
        for (unsigned i = 0; i < OUTPUTS; i++) ready |= unsigned(!chance()) << i;
        core_->out_ready = ready;
        core_->dma_ready = !chance();
        core_->done_ready = !chance();
    }

    void accept() {
        unsigned taken = offered_ & core_->in_ready;
        for (unsigned i = 0; i < INPUTS; i++)
            if (taken >> i & 1) {
                Burst &b = in_[i].front();
                if (++b.term == b.terms) b.term = 0, b.block++;
                if (b.block == b.blocks) in_[i].pop_front();
            }
        offered_ &= ~taken;
        unsigned left = core_->out_valid & core_->out_ready;
        for (unsigned i = 0; i < OUTPUTS; i++)
            if (left >> i & 1) {
                if (out_[i].empty()) throw std::runtime_error("a block came that no request announced");
                Burst &b = out_[i].front();
                word(b.at + b.block) = get(core_->out_data, i);
                if (++b.block == b.blocks) out_[i].pop_front();
            }
        written_ |= left;
        if (core_->dma_valid && core_->dma_ready) request();
        if (core_->done_valid && core_->done_ready) {
            done_.push_back({uint16_t(core_->done_id), bool(core_->done_refused), core_->done_cycles,
                             {get(core_->done_a), get(core_->done_c)}});
            moved_ = cycles_;
        }
        if (taken | left) moved_ = cycles_;
    }

    void request() {
        uint64_t at = core_->dma_address;
        if (at % 16) throw std::runtime_error("a request at half a block");
        Burst b{at / 16, core_->dma_blocks, core_->dma_terms, 0, 0, cycles_ + latency_};
        if (core_->dma_write) out_.at(core_->dma_stream).push_back(b);
        else in_.at(core_->dma_stream).push_back(b);
    }

    u128 &word(uint64_t at) {
        if (at >= memory_.size()) throw std::runtime_error("a request beyond the memory");
        return memory_[at];
    }

    std::unique_ptr<Vaccel_core> core_;
    unsigned latency_, stall_, tail_ = 0, offered_ = 0, written_ = 0;
    uint64_t cycles_ = 0, moved_ = 0; // now, and when a block or completion last passed
    uint64_t state_ = 0x9e3779b97f4a7c15;
    std::vector<u128> memory_;
    std::array<std::deque<Burst>, INPUTS> in_;
    std::array<std::deque<Burst>, OUTPUTS> out_;
    std::deque<Completion> done_;
};

} // namespace sim
