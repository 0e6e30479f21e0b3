// Parameters, keys, inputs and the comparison with the clear that the five workloads share.
#pragma once

#include <seal_osprey.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace osprey::ckks {

using osp::he::Ciphertext;
using osp::he::Decryptor;
using osp::he::Encryptor;
using osp::he::Evaluator;

// Degree 8192, primes of 60, 40 and 40 bits and a key-switching prime of 60: 200 bits, where 218 give 128 bits of
// security (homomorphicencryption.org, ternary secrets). Two multiplications deep at a scale of 2^40.
// One ciphertext: 2 polynomials * 8192 * 8 bytes = 128 KiB per prime that is left.
inline constexpr std::size_t DEGREE = 8192;
inline constexpr double SCALE = 1099511627776.0;  // 2^40
// Most by which a result may differ from the computation in the clear, relative to the largest value of its slots
// (at least 1). What is measured is below 1e-7; a wrong operand gives more than 1e-4.
inline constexpr double TOLERANCE = 1e-6;

// Everything that is not a ciphertext, made in either pass. It lies outside the region.
class Scheme {
public:
    Scheme();

    // The parameters with that many primes left: 3 as encrypted, 1 at the end.
    seal::parms_id_type level(std::size_t primes) const;
    std::size_t slots() const { return encoder.slot_count(); }
    // Product of two, still of size 3, back to size 2 and the next level. Reuses the memory of `product`.
    void finish(Ciphertext &product, Ciphertext &out) const;

    seal::SEALContext context;
    seal::PublicKey public_key;
    seal::RelinKeys relin_keys;
    // Neither encoder nor decryptor has const methods to decode with.
    mutable seal::CKKSEncoder encoder;
    Evaluator evaluator;
    std::optional<Encryptor> encryptor;
    mutable std::optional<Decryptor> decryptor;
};

// Inputs from a public seed. Encryption takes milliseconds, so 48 vectors are encrypted and input i is the sum of three
// of them by the base-16 digits of i: 4096 different ciphertexts, then the same values again in memory of their own.
class Inputs {
public:
    explicit Inputs(std::size_t slots);

    // Inputs first .. first + count as ciphertexts with that many primes.
    std::vector<Ciphertext> encrypt(const Scheme &scheme, std::size_t first, std::size_t count,
                                    std::size_t primes) const;
    // Slot `slot` of input i, in (-3, 3).
    double at(std::size_t i, std::size_t slot) const {
        return parts_[digit(i, 0)][slot] + parts_[digit(i, 1)][slot] + parts_[digit(i, 2)][slot];
    }

private:
    static constexpr std::size_t BASE = 16, DIGITS = 3;
    static std::size_t digit(std::size_t i, std::size_t place) { return place * BASE + (i >> 4 * place) % BASE; }

    std::vector<std::vector<double>> parts_;
};

// Largest difference between what `c` decrypts to and `expected`, relative to the largest |expected| (at least 1).
// 0 in the speculative pass, which only touches `c`; infinite when a slot is no number.
double difference(const Scheme &scheme, const Ciphertext &c, const std::vector<double> &expected);

}  // namespace osprey::ckks
