// What the accelerator computes, written down once more without regard to its structure or to the Rust code.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sim {

typedef unsigned __int128 u128;
enum Operation : uint8_t { ADD, SUBTRACT, MULTIPLY, FOLD };
enum Ring : uint8_t { Z128, Z64, Z2 };

inline u128 halves(u128 high, u128 low) { return high << 64 | uint64_t(low); }
inline u128 add(Ring r, u128 a, u128 b) { return r == Z128 ? a + b : r == Z64 ? halves((a >> 64) + (b >> 64), a + b) : a ^ b; }
inline u128 sub(Ring r, u128 a, u128 b) { return r == Z128 ? a - b : r == Z64 ? halves((a >> 64) - (b >> 64), a - b) : a ^ b; }
inline u128 mul(Ring r, u128 a, u128 b) {
    return r == Z128 ? a * b : r == Z64 ? halves((a >> 64) * (b >> 64), uint64_t(a) * uint64_t(b)) : a & b;
}

// GF(2^128) modulo x^128 + x^7 + x^2 + x + 1, a bit at a time.
inline u128 field(u128 a, u128 b) {
    u128 p = 0;
    for (int i = 0; i < 128; i++) {
        if (b >> i & 1) p ^= a;
        a = a << 1 ^ (a >> 127 ? 0x87 : 0);
    }
    return p;
}

// FIPS 197, bytes in place, its S-box from inverses in GF(2^8).
class Aes {
  public:
    explicit Aes(u128 key) {
        for (int i = 0; i < 16; i++) keys_[i] = uint8_t(key >> (8 * i));
        uint8_t constant = 1;
        for (int i = 16; i < 176; i += 4) {
            uint8_t t[4];
            for (int j = 0; j < 4; j++) t[j] = keys_[i - 4 + j];
            if (i % 16 == 0) {
                uint8_t top = t[0];
                for (int j = 0; j < 3; j++) t[j] = sbox(t[j + 1]);
                t[3] = sbox(top);
                t[0] ^= constant;
                constant = times(constant, 2);
            }
            for (int j = 0; j < 4; j++) keys_[i + j] = keys_[i - 16 + j] ^ t[j];
        }
    }

    u128 encrypt(u128 x) const {
        uint8_t s[16], t[16];
        for (int i = 0; i < 16; i++) s[i] = uint8_t(x >> (8 * i)) ^ keys_[i];
        for (int round = 1; round <= 10; round++) {
            for (int i = 0; i < 16; i++) t[i] = sbox(s[(i + 4 * (i % 4)) % 16]);
            for (int i = 0; i < 16; i++) {
                const uint8_t *c = t + i / 4 * 4;
                int r = i % 4;
                s[i] = round == 10 ? t[i]
                                   : times(c[r], 2) ^ times(c[(r + 1) % 4], 3) ^ c[(r + 2) % 4] ^ c[(r + 3) % 4];
                s[i] ^= keys_[16 * round + i];
            }
        }
        u128 y = 0;
        for (int i = 15; i >= 0; i--) y = y << 8 | s[i];
        return y;
    }

  private:
    static uint8_t times(uint8_t a, uint8_t b) {
        uint8_t p = 0;
        for (; b; b >>= 1, a = uint8_t(a << 1 ^ (a >> 7 ? 0x1b : 0)))
            if (b & 1) p ^= a;
        return p;
    }

    static uint8_t sbox(uint8_t x) {
        static const std::array<uint8_t, 256> table = [] {
            std::array<uint8_t, 256> t{};
            for (int x = 0; x < 256; x++) {
                uint8_t inverse = 0;
                for (int y = 1; y < 256; y++)
                    if (times(uint8_t(x), uint8_t(y)) == 1) inverse = uint8_t(y);
                uint8_t s = 0x63;
                for (int shift : {0, 1, 2, 3, 4}) s ^= uint8_t(inverse << shift | inverse >> (8 - shift));
                t[x] = s;
            }
            return t;
        }();
        return table[x];
    }

    uint8_t keys_[176];
};

// A command at one seat: streams 0 to 6 and digests, from planes.
struct Expected {
    std::array<std::vector<u128>, 7> streams;
    std::array<u128, 2> digests;
};

class Seat {
  public:
    const unsigned seat;
    const std::array<u128, 3> keys, tags;

    Seat(unsigned seat, const std::array<u128, 3> &keys, const std::array<u128, 3> &tags)
        : seat(seat), keys(keys), tags(tags), ciphers_{Aes(keys[0]), Aes(keys[1]), Aes(keys[2])} {}

    bool sends(bool second, unsigned who) const { return (who % 4 < 2) != second; }

    // An element of the stream of a channel under the key of a part.
    u128 stream(unsigned part, uint64_t round, unsigned use, unsigned sender, unsigned voucher, uint64_t index) const {
        uint64_t prefix = round << 16 | use << 8 | (sender % 4) << 4 | voucher % 4;
        return ciphers_[part].encrypt(u128(prefix) << 64 | index);
    }

  private:
    const std::array<Aes, 3> ciphers_;
};

} // namespace sim
