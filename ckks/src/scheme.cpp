#include "scheme.hpp"

#include <cmath>
#include <limits>

namespace osprey::ckks {

namespace {

seal::EncryptionParameters parameters() {
    seal::EncryptionParameters parameters(seal::scheme_type::ckks);
    parameters.set_poly_modulus_degree(DEGREE);
    parameters.set_coeff_modulus(seal::CoeffModulus::Create(DEGREE, {60, 40, 40, 60}));
    return parameters;
}

// SplitMix64: what the k-th value of a public seed is.
std::uint64_t mix(std::uint64_t k) {
    k *= 0x9E3779B97F4A7C15;
    k = (k ^ k >> 30) * 0xBF58476D1CE4E5B9;
    k = (k ^ k >> 27) * 0x94D049BB133111EB;
    return k ^ k >> 31;
}

}  // namespace

Scheme::Scheme() : context(parameters()), encoder(context), evaluator(context) {
    seal::KeyGenerator keys(context);
    keys.create_public_key(public_key);
    keys.create_relin_keys(relin_keys);
    encryptor.emplace(context, public_key);
    decryptor.emplace(context, keys.secret_key());
}

seal::parms_id_type Scheme::level(std::size_t primes) const {
    auto data = context.first_context_data();
    while (data->parms().coeff_modulus().size() > primes) data = data->next_context_data();
    return data->parms_id();
}

void Scheme::finish(Ciphertext &product, Ciphertext &out) const {
    evaluator.relinearize_inplace(product, relin_keys);
    evaluator.rescale_to_next(product, out);
}

Inputs::Inputs(std::size_t slots) : parts_(BASE * DIGITS, std::vector<double>(slots)) {
    std::uint64_t k = 0;
    for (auto &part : parts_) {
        for (double &value : part) value = static_cast<double>(mix(++k) >> 11) * 0x1p-52 - 1;
    }
}

std::vector<Ciphertext> Inputs::encrypt(const Scheme &scheme, std::size_t first, std::size_t count,
                                        std::size_t primes) const {
    std::vector<Ciphertext> parts(parts_.size()), inputs(count);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        seal::Plaintext plain;
        scheme.encoder.encode(parts_[i], scheme.level(primes), SCALE, plain);
        scheme.encryptor->encrypt(plain, parts[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
        scheme.evaluator.add(parts[digit(first + i, 0)], parts[digit(first + i, 1)], inputs[i]);
        scheme.evaluator.add_inplace(inputs[i], parts[digit(first + i, 2)]);
    }
    return inputs;
}

double difference(const Scheme &scheme, const Ciphertext &c, const std::vector<double> &expected) {
    seal::Plaintext plain;
    scheme.decryptor->decrypt(c, plain);
    if (osp_speculating() != 0) return 0;
    std::vector<double> values;
    scheme.encoder.decode(plain, values);
    double worst = 0, largest = 1;
    for (std::size_t slot = 0; slot < expected.size(); ++slot) {
        double off = std::abs(values[slot] - expected[slot]);
        if (std::isnan(off)) return std::numeric_limits<double>::infinity();
        worst = std::max(worst, off);
        largest = std::max(largest, std::abs(expected[slot]));
    }
    return worst / largest;
}

}  // namespace osprey::ckks
