// Microsoft SEAL under Osprey: ciphertexts in the content-oblivious region, evaluation stubbed in the
// speculative pass.
//
// Functionality. `osp::he::{Ciphertext, Evaluator, Encryptor, Decryptor}` stand for the classes of the same
// names in `seal`: a program says `using` for these four and is otherwise unchanged, under CKKS, BFV and BGV.
// SEAL's sources are not edited; nothing is linked but SEAL and Osprey.
//
// What must hold. Only the data of these ciphertexts lies in the region. Everything else stays in SEAL's own
// pools: the context with its NTT and index tables, keys, plaintexts, and the temporaries within an
// operation. The speculative pass aliases the region to few pages, so a table there would be overwritten;
// that is why SEAL's default pool is left alone. Ciphertexts that SEAL's base class copies (`seal::Ciphertext
// b = a`) lie outside too: correct, but not paged. In the speculative pass whatever is decrypted is zero: a
// program must not stop over it (`osp::speculating`).
//
// Deviations from the paper (004, section 5.2). It changes 721 lines in 11 files of SEAL for allocation alone
// and does not stub evaluation. Here `Block`, `Pool` and `Ciphertext` do the same from outside, and
// speculation runs ahead because each operation is replaced by what it does to memory: same allocations in
// the same order, inputs read, output written.
//
// Cost. Per operation one call that asks the mode, in the real pass; in the speculative one a note per chunk,
// and zeros where SEAL fills memory that it grows into.
#ifndef SEAL_OSPREY_HPP
#define SEAL_OSPREY_HPP

#include <osprey.hpp>
#include <seal/seal.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <stdexcept>

namespace osp::he {

// One allocation of the region, as SEAL's pools know them: a head with its only item. It goes as soon as SEAL
// gives it back, so that dead chunks are known, where SEAL's own heads keep it for later.
struct Block final : ::seal::util::MemoryPoolHead, ::seal::util::MemoryPoolItem {
    explicit Block(std::size_t n) : MemoryPoolItem(static_cast<::seal::seal_byte *>(allocate(n))), bytes(n) {}
    std::size_t item_byte_count() const noexcept override { return bytes; }
    std::size_t item_count() const noexcept override { return 1; }
    MemoryPoolItem *get() override { return this; }
    void add(MemoryPoolItem *) noexcept override { osp_free(data(), bytes), delete this; }
    const std::size_t bytes;
};

// A pool of such blocks. It holds a head for as long as SEAL's own pool takes to find it there: pointers come
// from no other place.
struct Pool final : ::seal::util::MemoryPoolST {
    ::seal::util::Pointer<::seal::seal_byte> get_for_byte_count(std::size_t bytes) override {
        const std::lock_guard alone(mutex);
        if (bytes != 0) pools_.assign(1, new Block(bytes));
        auto memory = MemoryPoolST::get_for_byte_count(bytes);
        pools_.clear();
        return memory;
    }
    std::mutex mutex;
};

inline ::seal::MemoryPoolHandle region_pool() {
    static const ::seal::MemoryPoolHandle handle(std::make_shared<Pool>());
    return handle;
}

// A ciphertext whose data lies in the region.
struct Ciphertext : ::seal::Ciphertext {
    Ciphertext() : ::seal::Ciphertext(region_pool()) {}
    template <class... A>
    explicit Ciphertext(const ::seal::SEALContext &c, A... a) : ::seal::Ciphertext(c, a..., region_pool()) {}
    Ciphertext(const ::seal::Ciphertext &other) : ::seal::Ciphertext(other, region_pool()) {}
    Ciphertext(const Ciphertext &other) : ::seal::Ciphertext(other, region_pool()) {}
    Ciphertext(Ciphertext &&) = default;
    Ciphertext &operator=(const Ciphertext &) = default;
    Ciphertext &operator=(Ciphertext &&) = default;
};

// What follows is for the speculative pass alone.
namespace detail {

using C = ::seal::Ciphertext;
using ::seal::SEALContext;

template <class... A>
inline constexpr bool has_ciphertext = (std::is_base_of_v<C, A> || ...);

// What the arguments of a call say, whatever the operation: its ciphertexts in order, and what else shapes
// the result.
struct Call {
    const C *all[3] = {}, *from = nullptr, *other = nullptr;
    std::size_t count = 0;
    const ::seal::Plaintext *plain = nullptr;
    const ::seal::parms_id_type *level = nullptr;
    bool once = false;  // to the power of one

    template <class... A>
    explicit Call(const A &...a) {
        (note(a), ...);
    }
    template <class T>
    void note(const T &x) {
        if constexpr (std::is_base_of_v<C, T>) all[count++] = &x;
        if constexpr (std::is_same_v<T, ::seal::Plaintext>) plain = &x;
        if constexpr (std::is_same_v<T, ::seal::parms_id_type>) level = &x;
        if constexpr (std::is_integral_v<T>) once = x == 1;
    }
};

// In which order an operation in place goes over its operands: where chunks are small, that is not all at
// once.
enum class Order { one_by_one, polynomials_together, rows_together };

// What an operation makes of a ciphertext in place, and how many of its polynomials it reads and writes.
struct Shape {
    ::seal::parms_id_type level;
    std::size_t size;
    double scale;
    bool ntt;
    std::size_t reads, writes;
    std::size_t rows = ~std::size_t(0);  // of each polynomial, where it does not read all of them
    bool direct = false;                 // the form with a result of its own does not start from a copy
    Order order = Order::one_by_one;
};

inline std::size_t words(const SEALContext &context, ::seal::parms_id_type level, std::size_t size) {
    auto &parms = context.get_context_data(level)->parms();
    return size * parms.poly_modulus_degree() * parms.coeff_modulus().size();
}

inline void read(const C &c, std::size_t polynomials, std::size_t rows = ~std::size_t(0)) {
    rows = std::min(rows, c.coeff_modulus_size());
    for (std::size_t i = 0; i < std::min(polynomials, c.size()); ++i) {
        osp_touch_read(c.data(i), rows * c.poly_modulus_degree() * sizeof *c.data());
    }
}

// The memory of `out` as a copy of `from`, both from their beginnings on.
inline void copy(const C &from, C &out) {
    std::size_t words = from.dyn_array().size(), row = from.poly_modulus_degree();
    for (std::size_t at = 0; at < words; at += row) {
        osp_touch_read(from.data() + at, row * sizeof *from.data());
        osp_touch_write(out.data() + at, row * sizeof *from.data());
    }
}

// `writes` polynomials of `out`, from `other` and themselves.
inline void combine(const C &other, C &out, std::size_t writes, Order order) {
    std::size_t degree = out.poly_modulus_degree(), row = degree * sizeof *out.data();
    auto touch = [&](std::size_t i, std::size_t j) {
        if (i < other.size()) osp_touch_read(other.data(i) + j * degree, row);
        if (i < writes) osp_touch_write(out.data(i) + j * degree, row);
    };
    std::size_t polynomials = std::max(other.size(), writes), rows = out.coeff_modulus_size();
    for (std::size_t k = 0; k < polynomials * rows; ++k) {
        order == Order::rows_together ? touch(k % polynomials, k / polynomials) : touch(k / rows, k % rows);
    }
}

// Shapes, by what SEAL does to `call.from` in place with `call.other`.
inline Shape same(const SEALContext &, const Call &call) {
    auto &c = *call.from;
    return {c.parms_id(), c.size(), c.scale(), c.is_ntt_form(), c.size(), c.size()};
}
inline Shape untouched(const SEALContext &context, const Call &call) {
    Shape shape = same(context, call);
    shape.reads = shape.writes = 0;
    return shape;
}
inline Shape sum(const SEALContext &context, const Call &call) {
    Shape shape = same(context, call);
    shape.size = std::max(shape.size, call.other->size());
    // What is longer than the other operand stays as it is, unless BGV multiplies both to have equal factors.
    bool scaled = context.key_context_data()->parms().scheme() == ::seal::scheme_type::bgv;
    shape.reads = shape.writes = scaled ? shape.size : call.other->size();
    shape.order = Order::polynomials_together;
    return shape;
}
inline Shape plain_sum(const SEALContext &context, const Call &call) {
    Shape shape = same(context, call);
    shape.reads = shape.writes = 1;
    return shape;
}
inline Shape plain_product(const SEALContext &context, const Call &call) {
    Shape shape = same(context, call);
    shape.scale *= call.plain->scale();
    return shape;
}
inline Shape product(const SEALContext &context, const Call &call) {
    Shape shape = same(context, call);
    auto &other = call.other ? *call.other : *call.from;
    shape.writes = shape.size += other.size() - 1;
    shape.scale *= other.scale();
    bool ckks = context.key_context_data()->parms().scheme() == ::seal::scheme_type::ckks;
    if (ckks && shape.size == 3) shape.order = Order::rows_together;
    return shape;
}
inline Shape relinearized(const SEALContext &context, const Call &call) {
    Shape shape = call.from->size() == 2 ? untouched(context, call) : same(context, call);
    shape.size = 2;
    shape.writes = std::min<std::size_t>(shape.writes, 2);
    return shape;
}
inline Shape power(const SEALContext &context, const Call &call) {
    if (call.once) return untouched(context, call);
    Shape shape = same(context, call);
    shape.size = shape.writes = 2;
    return shape;
}
inline Shape to_ntt(const SEALContext &context, const Call &call) {
    Shape shape = same(context, call);
    shape.ntt = true;
    return shape;
}
inline Shape from_ntt(const SEALContext &context, const Call &call) {
    Shape shape = same(context, call);
    shape.ntt = false;
    return shape;
}
// One level down; where the call names a level, `pretend` repeats it.
inline Shape lower(const SEALContext &context, const Call &call, bool rescale) {
    if (call.level && *call.level == call.from->parms_id()) return untouched(context, call);
    Shape shape = same(context, call);
    auto here = context.get_context_data(call.from->parms_id());
    auto next = here->next_context_data();
    if (!next) throw std::invalid_argument("end of modulus switching chain reached");
    shape.level = next->parms_id();
    shape.direct = !call.level;
    if (rescale) {
        shape.scale /= static_cast<double>(here->parms().coeff_modulus().back().value());
    } else if (here->parms().scheme() == ::seal::scheme_type::ckks) {
        shape.rows = next->parms().coeff_modulus().size();
    }
    return shape;
}
inline Shape lowered(const SEALContext &context, const Call &call) { return lower(context, call, false); }
inline Shape rescaled(const SEALContext &context, const Call &call) { return lower(context, call, true); }
inline Shape encrypted(const SEALContext &context, const Call &call) {
    bool ckks = context.key_context_data()->parms().scheme() == ::seal::scheme_type::ckks;
    auto level = call.level ? *call.level : context.first_parms_id();
    if (call.plain && ckks) level = call.plain->parms_id();
    return {level, 2, call.plain && ckks ? call.plain->scale() : 1, ckks, 0, 2};
}

using Rule = Shape (*)(const SEALContext &, const Call &);

// Does to memory what an operation does: the result gets its level, size, scale and, where it grows, its
// allocations, and what is read and written counts as touched. Works as SEAL: on a copy of the first operand
// in the memory of the result, in place; where the result is the second operand, in place there.
inline void pretend(const SEALContext &context, Rule rule, bool in_place, Call call) {
    std::size_t inputs = call.count - (in_place ? 0 : 1);
    // The last argument that is a ciphertext: the caller gave it as one that may change.
    C &out = const_cast<C &>(*call.all[in_place ? 0 : inputs]);
    call.from = call.all[0];
    if (inputs == 2) call.other = call.all[1];
    bool swapped = call.other == &out;
    if (swapped) std::swap(call.from, call.other);
    Shape shape = rule(context, call);
    if (swapped) shape.reads = shape.writes = shape.size;  // a difference is negated
    std::size_t copied = 0;
    if (call.from != &out && !shape.direct) {
        auto &first = *call.from;
        copied = first.dyn_array().size();
        // Growing within what there is would fill with zeros, which only counts here.
        std::size_t all = std::max(copied, words(context, shape.level, shape.size));
        bool fits = all <= out.dyn_array().capacity();
        if (!fits) out.resize(context, first.parms_id(), first.size());
        copy(first, out);
        if (fits) osp_touch_write(out.data() + copied, (all - copied) * sizeof *out.data());
    }
    bool together = call.other && shape.order != Order::one_by_one;
    for (;; call.from = &out, copied = 0, shape = rule(context, call)) {
        bool grows = call.from == &out && shape.size > out.size();
        if (grows) out.resize(context, shape.level, shape.size);
        if (copied != 0 && !together) osp_touch_read(out.data(), copied * sizeof *out.data());
        if (copied == 0 && !together) read(*call.from, shape.reads, shape.rows);
        out.resize(context, shape.level, shape.size);
        out.is_ntt_form() = shape.ntt;
        out.scale() = shape.scale;
        if (together) {
            combine(*call.other, out, shape.writes, shape.order);
        } else {
            if (call.other) read(*call.other, call.other->size());
            osp_touch_write(out.data(), words(context, shape.level, shape.writes) * sizeof *out.data());
        }
        // SEAL looks whether the rest is zero, and finds at once that it is not.
        if (shape.writes != 0) osp_touch_read(out.data(1), sizeof *out.data());
        if (!call.level || out.parms_id() == *call.level) return;
    }
}

// Counts an operation on ciphertexts, in either pass, and does it if this is the speculative one.
template <class... A>
bool stub(const SEALContext &context, Rule rule, bool in_place, const A &...a) {
    if constexpr (has_ciphertext<A...>) {
        tick();
        if (speculating()) return pretend(context, rule, in_place, Call(a...)), true;
    }
    return false;
}

}  // namespace detail

// An operation of the base class, under its name and for all its arguments: stubbed or passed on. Those on
// plaintexts alone are passed on, and so is what returns a ciphertext to be sent.
#define OSPREY_OPERATION(name, rule, in_place)                                                            \
    template <class... A>                                                                                 \
    auto name(A &&...a) const {                                                                           \
        if constexpr (detail::has_ciphertext<std::remove_cvref_t<A>...>) {                                \
            if (detail::stub(context_, detail::rule, in_place, a...)) return;                             \
        }                                                                                                 \
        return Base::name(std::forward<A>(a)...);                                                         \
    }
#define OSPREY_OPERATIONS(name, rule)     \
    OSPREY_OPERATION(name, rule, false)   \
    OSPREY_OPERATION(name##_inplace, rule, true)

// SEAL's evaluator, every operation of it.
class Evaluator : public ::seal::Evaluator {
    using Base = ::seal::Evaluator;
    ::seal::SEALContext context_;

public:
    explicit Evaluator(const ::seal::SEALContext &context) : Base(context), context_(context) {}

    OSPREY_OPERATIONS(negate, same)
    OSPREY_OPERATIONS(add, sum)
    OSPREY_OPERATIONS(sub, sum)
    OSPREY_OPERATIONS(add_plain, plain_sum)
    OSPREY_OPERATIONS(sub_plain, plain_sum)
    OSPREY_OPERATIONS(multiply_plain, plain_product)
    OSPREY_OPERATIONS(multiply, product)
    OSPREY_OPERATIONS(square, product)
    OSPREY_OPERATIONS(relinearize, relinearized)
    OSPREY_OPERATIONS(exponentiate, power)
    OSPREY_OPERATIONS(mod_switch_to_next, lowered)
    OSPREY_OPERATIONS(mod_switch_to, lowered)
    OSPREY_OPERATIONS(rescale_to_next, rescaled)
    OSPREY_OPERATIONS(rescale_to, rescaled)
    OSPREY_OPERATIONS(transform_to_ntt, to_ntt)
    OSPREY_OPERATIONS(transform_from_ntt, from_ntt)
    OSPREY_OPERATIONS(apply_galois, same)
    OSPREY_OPERATIONS(rotate_rows, same)
    OSPREY_OPERATIONS(rotate_columns, same)
    OSPREY_OPERATIONS(rotate_vector, same)
    OSPREY_OPERATIONS(complex_conjugate, same)

    // Those over vectors, which SEAL takes of its own class alone: by the operations above, temporaries in
    // the region too.
    template <class Ciphertexts>
    void add_many(const Ciphertexts &terms, ::seal::Ciphertext &out) const {
        if (terms.empty()) throw std::invalid_argument("encrypteds cannot be empty");
        out = terms[0];
        for (std::size_t i = 1; i < terms.size(); ++i) add_inplace(out, terms[i]);
    }
    template <class Ciphertexts>
    void multiply_many(const Ciphertexts &factors, const ::seal::RelinKeys &keys,
                       ::seal::Ciphertext &out) const {
        if (factors.empty()) throw std::invalid_argument("encrypteds vector must not be empty");
        if (context_.key_context_data()->parms().scheme() == ::seal::scheme_type::ckks) {
            throw std::logic_error("unsupported scheme");
        }
        std::deque<Ciphertext> products;
        auto at = [&](std::size_t i) -> const ::seal::Ciphertext & {
            if (i < factors.size()) return factors[i];
            return products[i - factors.size()];
        };
        std::size_t i = 0;
        for (; i + 1 < factors.size() + products.size(); i += 2) {
            Ciphertext made;
            multiply(at(i), at(i + 1), made);
            relinearize_inplace(made, keys);
            products.push_back(std::move(made));
        }
        out = at(i);
    }
};

// SEAL's encryptor.
class Encryptor : public ::seal::Encryptor {
    using Base = ::seal::Encryptor;
    ::seal::SEALContext context_;

public:
    template <class... Keys>
    explicit Encryptor(const ::seal::SEALContext &context, const Keys &...keys)
        : Base(context, keys...), context_(context) {}

    OSPREY_OPERATION(encrypt, encrypted, true)
    OSPREY_OPERATION(encrypt_zero, encrypted, true)
    OSPREY_OPERATION(encrypt_symmetric, encrypted, true)
    OSPREY_OPERATION(encrypt_zero_symmetric, encrypted, true)
};

#undef OSPREY_OPERATIONS
#undef OSPREY_OPERATION

// SEAL's decryptor. In the speculative pass there is no noise, and what is decrypted is zero.
class Decryptor : public ::seal::Decryptor {
    using Base = ::seal::Decryptor;
    ::seal::SEALContext context_;

    bool stub(const ::seal::Ciphertext &c) const {
        tick();
        if (speculating()) detail::read(c, c.size());
        return speculating();
    }

public:
    Decryptor(const ::seal::SEALContext &context, const ::seal::SecretKey &key)
        : Base(context, key), context_(context) {}

    void decrypt(const ::seal::Ciphertext &c, ::seal::Plaintext &out) {
        if (!stub(c)) return Base::decrypt(c, out);
        bool ckks = context_.key_context_data()->parms().scheme() == ::seal::scheme_type::ckks;
        out.parms_id() = ::seal::parms_id_zero;
        out.resize(ckks ? detail::words(context_, c.parms_id(), 1) : 1);
        out.set_zero();
        if (ckks) out.parms_id() = c.parms_id();
        out.scale() = c.scale();
    }
    double invariant_noise(const ::seal::Ciphertext &c) { return stub(c) ? 0 : Base::invariant_noise(c); }
    int invariant_noise_budget(const ::seal::Ciphertext &c) {
        if (!stub(c)) return Base::invariant_noise_budget(c);
        return context_.get_context_data(c.parms_id())->total_coeff_modulus_bit_count();
    }
};

}  // namespace osp::he

#endif
