// Microsoft SEAL under Osprey: ciphertexts in the content-oblivious region, evaluation stubbed in the speculative pass.
//
// Functionality. `osprey::ckks::{Ciphertext, Evaluator, Encryptor, Decryptor}` stand for the classes of the same names
// in `seal`: a program says `using` for these four and is otherwise unchanged. SEAL's sources are not edited.
//
// What must hold. Only the data of these ciphertexts lies in the region. Everything else stays in SEAL's own pools:
// the context with its NTT and index tables, keys, plaintexts, and the temporaries within an operation. The speculative
// pass aliases the region to few pages, so a table there would be overwritten; that is why SEAL's default pool is left
// alone. Ciphertexts that SEAL's base class copies (`seal::Ciphertext b = a`) lie outside too: correct, but not paged.
// A program that reads decrypted values must not branch on them in the speculative pass (`osp_speculating`).
//
// Deviations from the paper (004, section 5.2). It changes 721 lines in 11 files of SEAL for allocation alone and does
// not stub evaluation. Here a pool is derived from SEAL's public classes, and speculation runs ahead because each
// operation is replaced by what it does to memory: same allocations in the same order, inputs read, output written.
//
// Cost. Per operation one call that asks the mode, in the real pass; in the speculative one a note per chunk, and zeros
// where SEAL fills memory that it grows into.
#pragma once

#include <osprey.h>
#include <seal/seal.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>

namespace osprey::ckks {

// Items of one size: memory of the region, given back as soon as SEAL gives it back, so that dead chunks are known.
class Head final : public seal::util::MemoryPoolHead {
public:
    explicit Head(std::size_t bytes) : bytes_(bytes) {}
    std::size_t item_byte_count() const noexcept override { return bytes_; }
    std::size_t item_count() const noexcept override { return count_; }
    seal::util::MemoryPoolItem *get() override {
        void *data = osp_alloc(bytes_);
        if (data == nullptr) throw std::bad_alloc();
        ++count_;
        return new seal::util::MemoryPoolItem(static_cast<seal::seal_byte *>(data));
    }
    void add(seal::util::MemoryPoolItem *item) noexcept override {
        osp_free(item->data(), bytes_);
        --count_;
        delete item;
    }

private:
    std::size_t bytes_;
    std::atomic<std::size_t> count_ = 0;
};

// SEAL's pool keeps a head per size, largest first, and makes its own where a size has none: ours is there before.
class Pool final : public seal::util::MemoryPoolMT {
public:
    seal::util::Pointer<seal::seal_byte> get_for_byte_count(std::size_t bytes) override {
        if (bytes != 0) {
            auto lock = pools_locker_.acquire_write();
            auto larger = [](auto *head, std::size_t size) { return head->item_byte_count() > size; };
            auto at = std::lower_bound(pools_.begin(), pools_.end(), bytes, larger);
            if (at == pools_.end() || (*at)->item_byte_count() != bytes) pools_.insert(at, new Head(bytes));
        }
        return MemoryPoolMT::get_for_byte_count(bytes);
    }
};

inline seal::MemoryPoolHandle region_pool() {
    static const seal::MemoryPoolHandle handle(std::make_shared<Pool>());
    return handle;
}

// A ciphertext whose data lies in the region.
class Ciphertext : public seal::Ciphertext {
public:
    Ciphertext() : seal::Ciphertext(region_pool()) {}
    Ciphertext(const seal::Ciphertext &other) : seal::Ciphertext(other, region_pool()) {}
    Ciphertext(const Ciphertext &other) : seal::Ciphertext(other, region_pool()) {}
    Ciphertext(Ciphertext &&) = default;
    Ciphertext &operator=(const Ciphertext &) = default;
    Ciphertext &operator=(Ciphertext &&) = default;
};

inline std::size_t bytes_of(const seal::Ciphertext &c) {
    return c.size() * c.poly_modulus_degree() * c.coeff_modulus_size() * sizeof(*c.data());
}

// Whether this is the speculative pass; if so, does what an operation does to memory: reads the inputs, gives `out` the
// level, the size (by way of `first`, the size SEAL gives it before the last one: each may allocate) and the scale of
// the result, and writes it. Operands may be `out`. Counts the operation in either pass.
using Operands = std::initializer_list<const seal::Ciphertext *>;
inline bool stubbed(const seal::SEALContext &context, Operands inputs, seal::Ciphertext &out,
                    seal::parms_id_type level, std::size_t first, std::size_t size, double scale) {
    osp_tick();
    if (osp_speculating() == 0) return false;
    for (auto *input : inputs) osp_touch_read(input->data(), bytes_of(*input));
    if (out.parms_id() != level || out.size_capacity() < size) out.resize(context, level, first);
    out.resize(context, level, size);
    out.is_ntt_form() = true;
    out.scale() = scale;
    osp_touch_write(out.data(), bytes_of(out));
    return true;
}

// SEAL's evaluator for CKKS. An operation that is not here runs as it is, at full cost and on meaningless data in the
// speculative pass; one line adds it.
class Evaluator : public seal::Evaluator {
    using Base = seal::Evaluator;
    using C = seal::Ciphertext;
    using P = seal::Plaintext;

public:
    explicit Evaluator(const seal::SEALContext &context) : Base(context), context_(context) {}

    void add(const C &a, const C &b, C &out) const {
        auto size = std::max(a.size(), b.size());
        if (!stub({&a, &b}, out, a.parms_id(), a.size(), size, a.scale())) Base::add(a, b, out);
    }
    void add_inplace(C &a, const C &b) const {
        auto size = std::max(a.size(), b.size());
        if (!stub({&a, &b}, a, a.parms_id(), a.size(), size, a.scale())) Base::add_inplace(a, b);
    }
    void sub_inplace(C &a, const C &b) const {
        auto size = std::max(a.size(), b.size());
        if (!stub({&a, &b}, a, a.parms_id(), a.size(), size, a.scale())) Base::sub_inplace(a, b);
    }
    void multiply(const C &a, const C &b, C &out) const {
        auto [size, scale] = std::pair(a.size() + b.size() - 1, a.scale() * b.scale());
        if (!stub({&a, &b}, out, a.parms_id(), a.size(), size, scale)) Base::multiply(a, b, out);
    }
    void square(const C &a, C &out) const {
        auto [size, scale] = std::pair(2 * a.size() - 1, a.scale() * a.scale());
        if (!stub({&a}, out, a.parms_id(), a.size(), size, scale)) Base::square(a, out);
    }
    void multiply_plain_inplace(C &a, const P &b) const {
        auto scale = a.scale() * b.scale();
        if (!stub({&a}, a, a.parms_id(), a.size(), a.size(), scale)) Base::multiply_plain_inplace(a, b);
    }
    void relinearize_inplace(C &a, const seal::RelinKeys &keys) const {
        if (!stub({&a}, a, a.parms_id(), a.size(), 2, a.scale())) Base::relinearize_inplace(a, keys);
    }
    void rescale_to_next(const C &a, C &out) const {
        auto here = context_.get_context_data(a.parms_id());
        auto level = here->next_context_data()->parms_id();
        auto scale = a.scale() / static_cast<double>(here->parms().coeff_modulus().back().value());
        if (!stub({&a}, out, level, a.size(), a.size(), scale)) Base::rescale_to_next(a, out);
    }

private:
    bool stub(Operands inputs, C &out, seal::parms_id_type level, std::size_t first, std::size_t size,
              double scale) const {
        return stubbed(context_, inputs, out, level, first, size, scale);
    }

    seal::SEALContext context_;
};

// SEAL's encryptor for CKKS.
class Encryptor : public seal::Encryptor {
public:
    Encryptor(const seal::SEALContext &context, const seal::PublicKey &key)
        : seal::Encryptor(context, key), context_(context) {}
    void encrypt(const seal::Plaintext &plain, seal::Ciphertext &out) const {
        bool stub = stubbed(context_, {}, out, plain.parms_id(), 2, 2, plain.scale());
        if (!stub) seal::Encryptor::encrypt(plain, out);
    }

private:
    seal::SEALContext context_;
};

// SEAL's decryptor. In the speculative pass the plaintext stays as it was: whoever decodes it asks `osp_speculating`.
class Decryptor : public seal::Decryptor {
public:
    using seal::Decryptor::Decryptor;
    void decrypt(const seal::Ciphertext &c, seal::Plaintext &out) {
        osp_tick();
        if (osp_speculating() != 0) return osp_touch_read(c.data(), bytes_of(c));
        seal::Decryptor::decrypt(c, out);
    }
};

}  // namespace osprey::ckks
