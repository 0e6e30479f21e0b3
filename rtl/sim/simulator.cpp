// tacit-rtl-sim: the accelerator under Verilator as a process.
//
//   tacit-rtl-sim                    serves commands on standard input and answers on standard output
//   tacit-rtl-sim test               whole commands with stalls, against a reference
//   tacit-rtl-sim bench [LATENCY]    cycles over batch sizes, as JSON; LATENCY in cycles from a memory request to its
//                                    first block, 275 (one microsecond at 275 MHz) if not given
//
// A frame is its length in 4 bytes and that many bytes; numbers are little-endian, blocks 16 bytes. A request is
//   1  seat (1 byte), three keys, three elements of tags
//   2  operation, ring, flags (1 byte each), blocks, terms (4 each), round, first (8 each), two digests, source planes
// and its answer is a status (1 byte) and, where that is 0, for 1 nothing, for 2 the cycles (8), two digests, a byte with a
// bit for each of the seven streams that the command has, and those streams. Any other status is followed by a text.

#include "bench.hpp"
#include "test_core.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace sim {

// The longest request: six planes of 2^20 blocks and what comes with them. crates/accel-rtl keeps to it.
constexpr uint32_t MAX_BLOCKS = 1u << 20;
constexpr uint32_t MAX_FRAME = 6 * 16 * MAX_BLOCKS + 256;

class Reader {
  public:
    explicit Reader(const std::vector<uint8_t> &bytes) : bytes_(bytes) {}

    template <class T> T take() {
        T v;
        if (left() < sizeof v) throw std::invalid_argument("a request is too short");
        std::memcpy(&v, &bytes_[at_], sizeof v);
        at_ += sizeof v;
        return v;
    }

    size_t left() const { return bytes_.size() - at_; }

  private:
    const std::vector<uint8_t> &bytes_;
    size_t at_ = 0;
};

template <class T> static void append(std::vector<uint8_t> &to, const T &v) {
    auto p = reinterpret_cast<const uint8_t *>(&v);
    to.insert(to.end(), p, p + sizeof v);
}

static void configure(Machine &machine, Reader &request) {
    unsigned seat = request.take<uint8_t>();
    if (seat > 3) throw std::invalid_argument("there are four seats");
    std::array<u128, 3> keys, tags;
    for (u128 &key : keys) key = request.take<u128>();
    for (u128 &tag : tags) tag = request.take<u128>();
    machine.configure(seat, keys, tags);
}

static void run(Machine &machine, Reader &request, std::vector<uint8_t> &answer) {
    Descriptor d;
    d.operation = Operation(request.take<uint8_t>());
    d.ring = Ring(request.take<uint8_t>());
    unsigned flags = request.take<uint8_t>();
    d.masked = flags & 1, d.digest = flags >> 1 & 1, d.expose = flags >> 2 & 1, d.second = flags >> 3 & 1;
    d.blocks = request.take<uint32_t>();
    d.terms = request.take<uint32_t>();
    d.round = request.take<uint64_t>();
    d.first = request.take<uint64_t>();
    for (u128 &digest : d.prior) digest = request.take<u128>();
    if (d.blocks == 0 || d.terms == 0 || uint64_t(d.blocks) * d.terms > MAX_BLOCKS)
        throw std::invalid_argument("a command has 1 to 2^20 blocks in all its terms");
    d.plane = d.blocks * d.terms;
    // Source planes, then three of results and four of messages.
    auto &memory = machine.memory();
    memory.clear();
    while (request.left()) memory.push_back(request.take<u128>());
    memory.resize(std::max<size_t>(memory.size(), 6ull * d.plane));
    d.destination = memory.size() * 16;
    d.message = d.destination + 3ull * d.blocks * 16;
    memory.resize(memory.size() + 7ull * d.blocks);

    machine.written();
    uint64_t start = machine.cycles();
    machine.enqueue(d);
    Completion c = machine.wait();
    if (c.refused) throw std::invalid_argument("the accelerator refused the descriptor");
    append(answer, uint64_t(machine.cycles() - start));
    for (u128 digest : c.digests) append(answer, digest);
    unsigned streams = machine.written();
    append(answer, uint8_t(streams));
    for (unsigned s = 0; s < Machine::OUTPUTS; s++)
        if (streams >> s & 1) {
            auto from = reinterpret_cast<const uint8_t *>(&memory[place(d, s)]);
            answer.insert(answer.end(), from, from + 16ull * d.blocks);
        }
}

static std::vector<uint8_t> refusal(const std::exception &e) {
    std::string text = e.what();
    std::vector<uint8_t> answer{1};
    answer.insert(answer.end(), text.begin(), text.end());
    return answer;
}

static int serve() {
    Machine machine;
    for (bool broken = false; !broken;) {
        uint32_t length;
        if (std::fread(&length, sizeof length, 1, stdin) != 1) return 0;
        if (length > MAX_FRAME) return std::fprintf(stderr, "error: a frame of %u bytes\n", length), 1;
        std::vector<uint8_t> frame(length), answer{0};
        if (length && std::fread(frame.data(), length, 1, stdin) != 1) return 1;
        try {
            Reader request(frame);
            switch (request.take<uint8_t>()) {
            case 1: configure(machine, request); break;
            case 2: run(machine, request, answer); break;
            default: throw std::invalid_argument("an unknown request");
            }
        } catch (const std::invalid_argument &e) {
            answer = refusal(e);
        } catch (const std::exception &e) {
            // The machine is in no state to go on from.
            answer = refusal(e);
            broken = true;
        }
        length = uint32_t(answer.size());
        if (std::fwrite(&length, sizeof length, 1, stdout) != 1 || std::fwrite(answer.data(), length, 1, stdout) != 1 ||
            std::fflush(stdout))
            return 1;
    }
    return 1;
}

} // namespace sim

int main(int count, char **arguments) {
    std::string what = count > 1 ? arguments[1] : "";
    if (what.empty()) return sim::serve();
    if (what == "test") return sim::test_core();
    if (what == "bench") return sim::bench(count > 2 ? unsigned(std::strtoul(arguments[2], nullptr, 10)) : 275);
    std::fprintf(stderr, "error: say nothing, test or bench [LATENCY]\n");
    return 2;
}
