// A garbled sort, shaped like the circuit libraries in use: Bit is a class of labels, an Integer is a std::vector of
// bits, gates return bits. Osprey takes three lines: the include, the base class of Bit, and the stub of the AND gate.
//
//     ./bits 1024                                  sorts 1024 numbers of 32 bits
//     osprey run --memory 64M -- ./bits 65536      the same in less memory than its labels need (64 MiB)
//
// Functionality: half-gates garbling and evaluation (Zahur, Rosulek, Evans 2015) with free XOR and a fixed-key hash,
// both parties in one process so that the result can be decoded and checked. A bit is 32 bytes: the garbler's label of
// zero and the label that the evaluator holds. No security is claimed: this is an example of memory, with real labels.
#include <osprey.hpp>

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Block = __m128i;

// AES-128 with one key for hashing and, under another, for making labels.
class Aes {
    Block keys[11];

    template <int constant>
    static Block next(Block key) {
        Block word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, constant), 0xff);
        for (int i = 0; i < 3; i++) key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
        return _mm_xor_si128(key, word);
    }

public:
    explicit Aes(Block key) {
        keys[0] = key;
        keys[1] = next<0x01>(keys[0]);
        keys[2] = next<0x02>(keys[1]);
        keys[3] = next<0x04>(keys[2]);
        keys[4] = next<0x08>(keys[3]);
        keys[5] = next<0x10>(keys[4]);
        keys[6] = next<0x20>(keys[5]);
        keys[7] = next<0x40>(keys[6]);
        keys[8] = next<0x80>(keys[7]);
        keys[9] = next<0x1b>(keys[8]);
        keys[10] = next<0x36>(keys[9]);
    }

    Block operator()(Block x) const {
        x = _mm_xor_si128(x, keys[0]);
        for (int i = 1; i < 10; i++) x = _mm_aesenc_si128(x, keys[i]);
        return _mm_aesenclast_si128(x, keys[10]);
    }
};

const Aes fixed_key(_mm_set_epi64x(0x243f6a8885a308d3, 0x13198a2e03707344));
const Aes label_key(_mm_set_epi64x(0, 1));
std::uint64_t labels_made = 0;
std::uint64_t gates = 0;

Block fresh_label() { return label_key(_mm_set_epi64x(0, std::int64_t(++labels_made))); }

// The evaluator's colour bit is the lowest: Delta has it set.
const Block delta = _mm_or_si128(fresh_label(), _mm_set_epi64x(0, 1));

Block colour_mask(Block x) { return _mm_set1_epi64x(-(_mm_cvtsi128_si64(x) & 1)); }

// pi(sigma(x) ^ tweak) ^ sigma(x) ^ tweak, with sigma(high, low) = (high ^ low, high).
Block hash(Block x, std::uint64_t tweak) {
    Block high = _mm_unpackhi_epi64(_mm_setzero_si128(), x);
    Block sigma = _mm_xor_si128(_mm_shuffle_epi32(x, 0x4e), high);
    Block input = _mm_xor_si128(sigma, _mm_set_epi64x(0, std::int64_t(tweak)));
    return _mm_xor_si128(fixed_key(input), input);
}

class Bit : public osp::oblivious {
    Block zero;
    Block held;

    Bit(Block zero, Block held) : zero(zero), held(held) {}

public:
    explicit Bit(bool value = false) {
        zero = fresh_label();
        held = _mm_xor_si128(zero, _mm_and_si128(delta, _mm_set1_epi64x(-std::int64_t(value))));
    }

    // A constant that both know.
    static Bit nought() { return {_mm_setzero_si128(), _mm_setzero_si128()}; }

    Bit operator^(const Bit& other) const {
        return {_mm_xor_si128(zero, other.zero), _mm_xor_si128(held, other.held)};
    }

    Bit operator!() const { return {_mm_xor_si128(zero, delta), held}; }

    Bit operator&(const Bit& other) const {
        Bit out = nought();
        if (osp::stub(*this, other, out)) return out;
        const std::uint64_t tweak = 2 * gates++;
        // The garbler: two ciphertexts for the gate.
        const Block a0 = hash(zero, tweak), a1 = hash(_mm_xor_si128(zero, delta), tweak);
        const Block b0 = hash(other.zero, tweak + 1), b1 = hash(_mm_xor_si128(other.zero, delta), tweak + 1);
        const Block mask_a = colour_mask(zero), mask_b = colour_mask(other.zero);
        const Block generator = _mm_xor_si128(_mm_xor_si128(a0, a1), _mm_and_si128(mask_b, delta));
        const Block evaluator = _mm_xor_si128(_mm_xor_si128(b0, b1), zero);
        const Block half_a = _mm_xor_si128(a0, _mm_and_si128(mask_a, generator));
        const Block half_b = _mm_xor_si128(b0, _mm_and_si128(mask_b, _mm_xor_si128(evaluator, zero)));
        out.zero = _mm_xor_si128(half_a, half_b);
        // The evaluator, with the labels it holds and the two ciphertexts.
        const Block got_a = _mm_xor_si128(hash(held, tweak), _mm_and_si128(colour_mask(held), generator));
        const Block key_b = _mm_and_si128(colour_mask(other.held), _mm_xor_si128(evaluator, held));
        out.held = _mm_xor_si128(got_a, _mm_xor_si128(hash(other.held, tweak + 1), key_b));
        return out;
    }

    // The value, when the label held is one of the two; otherwise the computation went wrong.
    bool reveal() const {
        const Block difference = _mm_xor_si128(zero, held);
        if (_mm_testz_si128(difference, difference)) return false;
        const Block wrong = _mm_xor_si128(difference, delta);
        if (_mm_testz_si128(wrong, wrong)) return true;
        std::fputs("a label that does not belong to its wire\n", stderr);
        std::exit(1);
    }

    std::uint64_t digest() const { return std::uint64_t(_mm_cvtsi128_si64(held)) * 0x9e3779b97f4a7c15; }
};

using Integer = std::vector<Bit>;

Integer garbled(std::uint32_t value) {
    Integer bits;
    bits.reserve(32);
    for (int i = 0; i < 32; i++) bits.emplace_back((value >> i & 1) != 0);
    return bits;
}

// Exchanges x and y where x > y.
void exchange(Integer& x, Integer& y) {
    Bit greater = Bit::nought();
    for (std::size_t i = 0; i < x.size(); i++) greater = greater ^ ((x[i] ^ greater) & (!y[i] ^ greater));
    for (std::size_t i = 0; i < x.size(); i++) {
        const Bit change = greater & (x[i] ^ y[i]);
        x[i] = x[i] ^ change;
        y[i] = y[i] ^ change;
    }
}

// Batcher's bitonic sort of a power of two of numbers.
void sort(std::vector<Integer>& numbers) {
    const std::size_t n = numbers.size();
    for (std::size_t block = 2; block <= n; block *= 2) {
        for (std::size_t step = block / 2; step > 0; step /= 2) {
            for (std::size_t i = 0; i < n; i++) {
                if (i & step) continue;
                const bool ascending = (i & block) == 0;
                exchange(numbers[ascending ? i : i | step], numbers[ascending ? i | step : i]);
            }
        }
    }
}

std::uint32_t revealed(const Integer& bits) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bits.size(); i++) value |= std::uint32_t(bits[i].reveal()) << i;
    return value;
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t n = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
    if (n < 2 || (n & (n - 1)) != 0) {
        std::fputs("usage: bits COUNT, a power of two from 2 on\n", stderr);
        return 2;
    }
    std::vector<std::uint32_t> clear(n);
    std::vector<Integer> numbers;
    numbers.reserve(n);
    for (std::size_t i = 0; i < n; i++) {
        clear[i] = std::uint32_t((i + 1) * 0x9e3779b97f4a7c15 >> 32);
        numbers.push_back(garbled(clear[i]));
    }
    osp::mark("start");
    sort(numbers);
    osp::mark("stop");
    if (osp::speculating()) return 0;

    std::sort(clear.begin(), clear.end());
    std::uint64_t digest = gates;
    for (std::size_t i = 0; i < n; i++) {
        if (revealed(numbers[i]) != clear[i]) {
            std::fprintf(stderr, "number %zu is wrong\n", i);
            return 1;
        }
        for (const Bit& bit : numbers[i]) digest = (digest << 7 | digest >> 57) ^ bit.digest();
    }
    std::printf("%zu numbers sorted, %llu gates, digest %016llx\n", n, (unsigned long long)gates,
                (unsigned long long)digest);
    return 0;
}
