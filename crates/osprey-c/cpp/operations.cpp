// Every operation of Microsoft SEAL on ciphertexts, with the region: `operations ckks|bfv|bgv [apart|real]`.
//
// Alone it computes each operation, in both of its forms and into results that have memory and that have
// none, keeps what comes out, and compares all of it with the clear at the end: more ciphertexts than `osprey
// run` may leave it. `apart` drops results at once and touches other memory between operations, so that a
// trace shows what each of them touches. `real` does the same with SEAL's own classes. Everything fits the 16
// MiB that a speculative pass really has, so SEAL computes there as ever, and the traces of `apart` and
// `real` tell whether the stubs touch what SEAL does.
#include <seal_osprey.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using osp::he::Ciphertext;
using seal::Plaintext;
using Slots = std::vector<double>;
using Clear = std::function<double(const Slots &x, const Slots &y, std::size_t i)>;

// Small and without security: what is tested is memory.
constexpr std::size_t DEGREE = 4096;
constexpr double SCALE = 1099511627776.0;  // 2^40

seal::SEALContext context_of(seal::scheme_type scheme) {
    seal::EncryptionParameters parameters(scheme);
    parameters.set_poly_modulus_degree(DEGREE);
    bool ckks = scheme == seal::scheme_type::ckks;
    parameters.set_coeff_modulus(
        seal::CoeffModulus::Create(DEGREE, ckks ? std::vector{50, 40, 40, 50} : std::vector{50, 50, 50, 50}));
    if (!ckks) parameters.set_plain_modulus(seal::PlainModulus::Batching(DEGREE, 20));
    return seal::SEALContext(parameters, true, seal::sec_level_type::none);
}

// Two stretches of the region in turn, each larger than what a speculative pass keeps mapped.
class Apart {
public:
    explicit Apart(bool on) {
        for (auto &stretch : stretches_) stretch = on ? osp::allocate(BYTES) : nullptr;
        // A trace begins with both, which tells them from the rest.
        (*this)(), (*this)();
    }
    void operator()() {
        if (stretches_[turn_]) osp_touch_read(stretches_[turn_], BYTES);
        turn_ = 1 - turn_;
    }

private:
    static constexpr std::size_t BYTES = 6 << 20;
    std::array<void *, 2> stretches_;
    std::size_t turn_ = 0;
};

// Slots in and out of plaintexts: numbers for CKKS, integers modulo the plaintext's modulus for the others.
class Encoder {
public:
    explicit Encoder(const seal::SEALContext &context) : context_(context) {
        auto &parameters = context.first_context_data()->parms();
        ckks = parameters.scheme() == seal::scheme_type::ckks;
        modulus_ = static_cast<double>(parameters.plain_modulus().value());
    }
    Plaintext encode(const Slots &slots, double scale) const {
        Plaintext plain;
        if (ckks) {
            seal::CKKSEncoder(context_).encode(slots, scale, plain);
        } else {
            std::vector<std::uint64_t> integers(slots.begin(), slots.end());
            seal::BatchEncoder(context_).encode(integers, plain);
        }
        return plain;
    }
    Slots decode(const Plaintext &plain) const {
        Slots slots;
        if (ckks) {
            seal::CKKSEncoder(context_).decode(plain, slots);
        } else {
            std::vector<std::uint64_t> integers;
            seal::BatchEncoder(context_).decode(plain, integers);
            slots.assign(integers.begin(), integers.end());
        }
        return slots;
    }
    bool equal(double a, double b) const {
        return ckks ? std::abs(a - b) < 1e-3 : std::fmod(a - b, modulus_) == 0;
    }
    std::size_t slots() const { return ckks ? DEGREE / 2 : DEGREE; }

    bool ckks;

private:
    seal::SEALContext context_;
    double modulus_;
};

template <class Evaluator, class Encryptor, class Decryptor>
class Session {
public:
    Session(seal::scheme_type scheme, bool apart)
        : context(context_of(scheme)),
          encoder(context),
          keys(context),
          evaluator(context),
          apart_(apart),
          kept_(!apart) {
        seal::PublicKey public_key;
        keys.create_public_key(public_key);
        keys.create_relin_keys(relin_keys);
        keys.create_galois_keys(std::vector<std::uint32_t>{3, 2 * DEGREE - 1}, galois_keys);
        encryptor.emplace(context, public_key, keys.secret_key());
        decryptor.emplace(context, keys.secret_key());
        for (std::size_t i = 0; i < encoder.slots(); ++i) {
            xs.push_back(encoder.ckks ? std::sin(double(i)) : double(i % 7));
            ys.push_back(encoder.ckks ? std::cos(double(3 * i)) : double(i % 5 + 1));
        }
        plain = encoder.encode(ys, SCALE);
        encrypt(x, xs, SCALE), encrypt(y, ys, SCALE), encrypt(wide, xs, SCALE * SCALE);
        evaluator.multiply(x, y, xy);
    }
    void encrypt(Ciphertext &out, const Slots &slots, double scale) {
        encryptor->encrypt(encoder.encode(slots, scale), out);
    }

    // The form with a result of its own, which has no memory at first, and then has some.
    void into(const std::string &name, Clear clear, const std::function<void(Ciphertext &)> &operation) {
        Ciphertext out;
        for (auto *again : {"", ", again"}) {
            apart_();
            operation(out);
            apart_();
            done(name + again, clear, out);
        }
    }
    // The form in place, from a copy of `start`.
    void in_place(const std::string &name, Clear clear, const Ciphertext &start,
                  const std::function<void(Ciphertext &)> &operation) {
        Ciphertext out = start;
        apart_();
        operation(out);
        apart_();
        done(name, clear, out);
    }
    // Whether everything was as in the clear; nothing is known of a pass whose results mean nothing.
    bool right() {
        for (auto &[name, clear, out] : results_) check(name, clear, out);
        return right_;
    }

private:
    struct Result {
        std::string name;
        Clear clear;
        Ciphertext out;
    };
    void done(const std::string &name, const Clear &clear, const Ciphertext &out) {
        if (kept_) {
            results_.push_back({name, clear, out});
        } else {
            check(name, clear, out);
        }
    }
    void check(const std::string &name, const Clear &clear, const Ciphertext &out) {
        Plaintext decrypted;
        decryptor->decrypt(out, decrypted);
        Slots slots = encoder.decode(decrypted);
        if (std::is_same_v<Evaluator, osp::he::Evaluator> && osp::speculating()) return;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < slots.size(); ++i) wrong += !encoder.equal(slots[i], clear(xs, ys, i));
        std::printf("%s: %zu slots differ\n", name.c_str(), wrong);
        right_ &= wrong == 0;
    }

public:
    seal::SEALContext context;
    Encoder encoder;
    seal::KeyGenerator keys;
    seal::RelinKeys relin_keys;
    seal::GaloisKeys galois_keys;
    Evaluator evaluator;
    std::optional<Encryptor> encryptor;
    std::optional<Decryptor> decryptor;
    Slots xs, ys;
    Plaintext plain;          // ys
    Ciphertext x, y, xy;      // the product has three polynomials
    Ciphertext wide;          // xs, at the scale of the product

private:
    Apart apart_;
    bool kept_, right_ = true;
    std::vector<Result> results_;
};

// An operation in both forms: its name, what it is in the clear, its first operand, the others.
#define BOTH(name, clear, start, ...)                                                             \
    s.into(#name, clear, [&](Ciphertext &c) { e.name(start __VA_OPT__(,) __VA_ARGS__, c); });     \
    s.in_place(#name "_inplace", clear, start,                                                    \
               [&](Ciphertext &c) { e.name##_inplace(c __VA_OPT__(,) __VA_ARGS__); })

template <class Session>
void arithmetic(Session &s) {
    auto &e = s.evaluator;
    Clear negated = [](auto &x, auto &, auto i) { return -x[i]; };
    Clear sum = [](auto &x, auto &y, auto i) { return x[i] + y[i]; };
    Clear difference = [](auto &x, auto &y, auto i) { return x[i] - y[i]; };
    Clear product = [](auto &x, auto &y, auto i) { return x[i] * y[i]; };
    Clear square = [](auto &x, auto &, auto i) { return x[i] * x[i]; };
    Clear longer = [](auto &x, auto &y, auto i) { return x[i] + x[i] * y[i]; };
    Clear less = [](auto &x, auto &y, auto i) { return x[i] - x[i] * y[i]; };
    Clear more = [](auto &x, auto &y, auto i) { return x[i] * y[i] - x[i]; };
    BOTH(negate, negated, s.x);
    BOTH(add, sum, s.x, s.y);
    BOTH(add, longer, s.wide, s.xy);
    BOTH(add, longer, s.xy, s.wide);
    BOTH(sub, difference, s.x, s.y);
    BOTH(sub, less, s.wide, s.xy);
    BOTH(sub, more, s.xy, s.wide);
    BOTH(add_plain, sum, s.x, s.plain);
    BOTH(sub_plain, difference, s.x, s.plain);
    BOTH(multiply_plain, product, s.x, s.plain);
    BOTH(multiply, product, s.x, s.y);
    BOTH(square, square, s.x);
    BOTH(relinearize, product, s.xy, s.relin_keys);
    s.in_place("relinearize_inplace of two", sum, s.x, [&](auto &c) {
        e.relinearize_inplace(c, s.relin_keys);
        e.add_plain_inplace(c, s.plain);
    });
    // The result as the second operand, and as both.
    s.in_place("add to itself", sum, s.y, [&](auto &c) { e.add(s.x, c, c); });
    s.in_place("sub from itself", difference, s.y, [&](auto &c) { e.sub(s.x, c, c); });
    s.in_place("multiply by itself", product, s.y,
               [&](auto &c) { e.multiply(s.x, c, c, seal::MemoryManager::GetPool()); });
    s.in_place("multiply_inplace by itself", square, s.x, [&](auto &c) { e.multiply_inplace(c, c); });
}

template <class Session>
void levels(Session &s) {
    auto &e = s.evaluator;
    Clear same = [](auto &x, auto &, auto i) { return x[i]; };
    Clear product = [](auto &x, auto &y, auto i) { return x[i] * y[i]; };
    auto last = s.context.last_parms_id();
    BOTH(mod_switch_to_next, same, s.x);
    BOTH(mod_switch_to, same, s.x, last);
    BOTH(mod_switch_to, same, s.x, s.x.parms_id());
    if (!s.encoder.ckks) return;
    Ciphertext wider;
    s.encrypt(wider, s.xs, SCALE * SCALE * 0x1p30);
    BOTH(rescale_to_next, product, s.xy);
    BOTH(rescale_to, same, wider, last);
}

template <class Session>
void permutations(Session &s) {
    auto &e = s.evaluator;
    Clear same = [](auto &x, auto &, auto i) { return x[i]; };
    Clear rotated = [](auto &x, auto &, auto i) {
        std::size_t row = DEGREE / 2;
        return x[i / row * row + (i + 1) % row];
    };
    Clear swapped = [](auto &x, auto &, auto i) { return x[(i + DEGREE / 2) % DEGREE]; };
    std::uint32_t element = 3;
    BOTH(apply_galois, rotated, s.x, element, s.galois_keys);
    if (s.encoder.ckks) {
        BOTH(rotate_vector, rotated, s.x, 1, s.galois_keys);
        BOTH(complex_conjugate, same, s.x, s.galois_keys);
    } else {
        BOTH(rotate_rows, rotated, s.x, 1, s.galois_keys);
        BOTH(rotate_columns, swapped, s.x, s.galois_keys);
    }
    s.in_place("transforms, in place", same, s.x, [&](auto &c) {
        if (s.encoder.ckks) e.transform_from_ntt_inplace(c);
        e.transform_to_ntt_inplace(c);
        if (!s.encoder.ckks) e.transform_from_ntt_inplace(c);
    });
    s.into("transforms", same, [&](auto &c) {
        Ciphertext other;
        if (s.encoder.ckks) {
            e.transform_from_ntt(s.x, other);
            e.transform_to_ntt(other, c);
        } else {
            e.transform_to_ntt(s.x, other);
            e.transform_from_ntt(other, c);
        }
    });
}

template <class Session>
void encryptions(Session &s) {
    Clear plain = [](auto &, auto &y, auto i) { return y[i]; };
    Clear zero = [](auto &, auto &, auto) { return 0; };
    s.into("encrypt", plain, [&](auto &c) { s.encryptor->encrypt(s.plain, c); });
    s.into("encrypt_symmetric", plain, [&](auto &c) { s.encryptor->encrypt_symmetric(s.plain, c); });
    // CKKS decodes at the scale of the ciphertext, which is 1 where nothing is encrypted: its noise is not
    // small then.
    if (s.encoder.ckks) return;
    auto level = s.context.last_parms_id();
    s.into("encrypt_zero", zero, [&](auto &c) { s.encryptor->encrypt_zero(c); });
    s.into("encrypt_zero at a level", zero, [&](auto &c) { s.encryptor->encrypt_zero(level, c); });
    s.into("encrypt_zero_symmetric", zero, [&](auto &c) { s.encryptor->encrypt_zero_symmetric(level, c); });
}

// What is made of the operations above, and takes vectors of the region's ciphertexts.
template <class Session>
void many(Session &s) {
    auto &e = s.evaluator;
    std::vector<Ciphertext> all{s.x, s.y, s.x};
    Clear sum = [](auto &x, auto &y, auto i) { return 2 * x[i] + y[i]; };
    Clear product = [](auto &x, auto &y, auto i) { return x[i] * y[i] * x[i]; };
    s.into("add_many", sum, [&](auto &c) { e.add_many(all, c); });
    if (s.encoder.ckks) return;
    s.into("multiply_many", product, [&](auto &c) { e.multiply_many(all, s.relin_keys, c); });
}

template <class Session>
bool run(seal::scheme_type scheme, bool apart) {
    Session s(scheme, apart);
    arithmetic(s);
    levels(s);
    permutations(s);
    encryptions(s);
    if (!s.encoder.ckks) {
        auto &e = s.evaluator;
        Clear same = [](auto &x, auto &, auto i) { return x[i]; };
        Clear cube = [](auto &x, auto &, auto i) { return x[i] * x[i] * x[i]; };
        BOTH(exponentiate, cube, s.x, 3, s.relin_keys);
        BOTH(exponentiate, same, s.x, 1, s.relin_keys);
    }
    if constexpr (std::is_same_v<decltype(s.evaluator), osp::he::Evaluator>) {
        if (!apart) many(s);
    }
    return s.right();
}

}  // namespace

int main(int argc, char **argv) {
    std::string_view name = argc > 1 ? argv[1] : "", how = argc > 2 ? argv[2] : "";
    auto scheme = name == "ckks"  ? seal::scheme_type::ckks
                  : name == "bfv" ? seal::scheme_type::bfv
                  : name == "bgv" ? seal::scheme_type::bgv
                                  : seal::scheme_type::none;
    if (scheme == seal::scheme_type::none || argc > 3 || (argc == 3 && how != "apart" && how != "real")) {
        std::fputs("usage: operations ckks|bfv|bgv [apart|real]\n", stderr);
        return 2;
    }
    using Real = Session<seal::Evaluator, seal::Encryptor, seal::Decryptor>;
    using Stubbed = Session<osp::he::Evaluator, osp::he::Encryptor, osp::he::Decryptor>;
    try {
        bool right = how == "real" ? run<Real>(scheme, true) : run<Stubbed>(scheme, how == "apart");
        return right ? 0 : 1;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "operations: %s\n", e.what());
        return 1;
    }
}
