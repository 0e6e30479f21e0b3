// Five CKKS workloads: sums, moments and products over more ciphertexts than memory holds.
//
// Functionality. Inputs are all made first; then mark("start"), the computation, mark("stop"); then outputs are
// decrypted and compared with the clear. One compute thread; every address and branch depends on the size alone.
//
// Deviations. The paper takes these programs from MAGE, where they are written in its language; here they call SEAL.
// Products are summed at size 3 and relinearised once per output. Sums and moments start with 3 primes (384 KiB per
// ciphertext), matrices with 2 (256 KiB), products end with 1 (128 KiB).
#include "workloads.hpp"

#include "scheme.hpp"

#include <chrono>

namespace osprey::ckks {

namespace {

using std::size_t;
using Matrix = std::vector<Ciphertext>;

// Seconds of `compute` between the marks.
template <class Compute>
double measured(Compute compute) {
    osp_mark("start");
    auto start = std::chrono::steady_clock::now();
    compute();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    osp_mark("stop");
    return seconds.count();
}

using Slots = std::vector<double>;

// Largest difference over all outputs; `clear(i, expected)` adds up what the slots of output i should hold.
template <class Clear>
double compare(const Scheme &scheme, const Matrix &outputs, bool check, Clear clear) {
    double worst = 0;
    for (size_t i = 0; check && i < outputs.size(); ++i) {
        Slots expected(scheme.slots());
        if (osp_speculating() == 0) clear(i, expected);
        worst = std::max(worst, difference(scheme, outputs[i], expected));
    }
    return worst;
}

// expected += input a * input b, slot by slot.
void add_product(const Inputs &inputs, size_t a, size_t b, Slots &expected) {
    for (size_t slot = 0; slot < expected.size(); ++slot) expected[slot] += inputs.at(a, slot) * inputs.at(b, slot);
}

// One stream: the sum of n ciphertexts.
Outcome rsum(size_t n, bool check) {
    Scheme scheme;
    Inputs inputs(scheme.slots());
    auto x = inputs.encrypt(scheme, 0, n, 3);
    Matrix sum(1);
    double seconds = measured([&] {
        sum[0] = x[0];
        for (size_t i = 1; i < n; ++i) scheme.evaluator.add_inplace(sum[0], x[i]);
    });
    double off = compare(scheme, sum, check, [&](size_t, Slots &expected) {
        for (size_t i = 0; i < n; ++i) {
            for (size_t slot = 0; slot < expected.size(); ++slot) expected[slot] += inputs.at(i, slot);
        }
    });
    return {seconds, off};
}

// One stream: mean = sum / n and variance = sum of squares / n - mean^2, each with n in the clear.
Outcome rstats(size_t n, bool check) {
    Scheme scheme;
    auto &evaluator = scheme.evaluator;
    Inputs inputs(scheme.slots());
    auto x = inputs.encrypt(scheme, 0, n, 3);
    Matrix out(2);
    Ciphertext &mean = out[0], &variance = out[1];
    auto divide = [&](Ciphertext &c, double scale) {
        seal::Plaintext inverse;
        scheme.encoder.encode(1.0 / static_cast<double>(n), c.parms_id(), scale, inverse);
        evaluator.multiply_plain_inplace(c, inverse);
    };
    double seconds = measured([&] {
        Ciphertext sum = x[0], squares, square;
        evaluator.square(x[0], squares);
        for (size_t i = 1; i < n; ++i) {
            evaluator.add_inplace(sum, x[i]);
            evaluator.square(x[i], square);
            evaluator.add_inplace(squares, square);
        }
        divide(sum, SCALE);
        evaluator.rescale_to_next(sum, mean);
        Ciphertext mean_squares, squared_mean;
        scheme.finish(squares, mean_squares);
        // The scale that both sides of the difference then have.
        divide(mean_squares, mean.scale() * mean.scale() / mean_squares.scale());
        evaluator.rescale_to_next(mean_squares, variance);
        evaluator.square(mean, square);
        scheme.finish(square, squared_mean);
        evaluator.sub_inplace(variance, squared_mean);
    });
    double off = compare(scheme, out, check, [&](size_t which, Slots &expected) {
        for (size_t slot = 0; slot < expected.size(); ++slot) {
            double sum = 0, squares = 0, count = static_cast<double>(n);
            for (size_t i = 0; i < n; ++i) {
                double value = inputs.at(i, slot);
                sum += value;
                squares += value * value;
            }
            expected[slot] = which == 0 ? sum / count : squares / count - sum / count * (sum / count);
        }
    });
    return {seconds, off};
}

// The matrix once, the vector again for every row.
Outcome rmvmul(size_t n, bool check) {
    Scheme scheme;
    Inputs inputs(scheme.slots());
    auto m = inputs.encrypt(scheme, 0, n * n, 2), v = inputs.encrypt(scheme, n * n, n, 2);
    Matrix out(n);
    double seconds = measured([&] {
        Ciphertext sum, product;
        for (size_t i = 0; i < n; ++i) {
            scheme.evaluator.multiply(m[i * n], v[0], sum);
            for (size_t k = 1; k < n; ++k) {
                scheme.evaluator.multiply(m[i * n + k], v[k], product);
                scheme.evaluator.add_inplace(sum, product);
            }
            scheme.finish(sum, out[i]);
        }
    });
    double off = compare(scheme, out, check, [&](size_t i, Slots &expected) {
        for (size_t k = 0; k < n; ++k) add_product(inputs, i * n + k, n * n + k, expected);
    });
    return {seconds, off};
}

// C = A * B for n x n matrices, A and C by rows, B by columns, computed by `multiply(scheme, a, b, c)`.
template <class Multiply>
Outcome rmatmul(size_t n, bool check, Multiply multiply) {
    Scheme scheme;
    Inputs inputs(scheme.slots());
    auto a = inputs.encrypt(scheme, 0, n * n, 2), b = inputs.encrypt(scheme, n * n, n * n, 2);
    Matrix c(n * n);
    double seconds = measured([&] { multiply(scheme, a, b, c); });
    double off = compare(scheme, c, check, [&](size_t i, Slots &expected) {
        for (size_t k = 0; k < n; ++k) add_product(inputs, i / n * n + k, n * n + i % n * n + k, expected);
    });
    return {seconds, off};
}

// B goes round once per row of A.
Outcome n_rmatmul(size_t n, bool check) {
    return rmatmul(n, check, [n](const Scheme &scheme, const Matrix &a, const Matrix &b, Matrix &c) {
        Ciphertext sum, product;
        for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < n; ++j) {
                scheme.evaluator.multiply(a[i * n], b[j * n], sum);
                for (size_t k = 1; k < n; ++k) {
                    scheme.evaluator.multiply(a[i * n + k], b[j * n + k], product);
                    scheme.evaluator.add_inplace(sum, product);
                }
                scheme.finish(sum, c[i * n + j]);
            }
        }
    });
}

// Rows and columns of a tile: its sums take 64 * 384 KiB.
constexpr size_t TILE = 8;

// Tiles of A and B are used TILE times each while they are there; sums of a tile of C stay until they are complete.
Outcome t_rmatmul(size_t n, bool check) {
    return rmatmul(n, check, [n](const Scheme &scheme, const Matrix &a, const Matrix &b, Matrix &c) {
        Matrix sums(TILE * TILE);
        Ciphertext product;
        auto tile = [&](size_t i0, size_t j0, size_t k0) {
            for (size_t i = i0; i < std::min(i0 + TILE, n); ++i) {
                for (size_t j = j0; j < std::min(j0 + TILE, n); ++j) {
                    Ciphertext &sum = sums[(i - i0) * TILE + j - j0];
                    for (size_t k = k0; k < std::min(k0 + TILE, n); ++k) {
                        scheme.evaluator.multiply(a[i * n + k], b[j * n + k], k == 0 ? sum : product);
                        if (k != 0) scheme.evaluator.add_inplace(sum, product);
                    }
                    if (k0 + TILE >= n) scheme.finish(sum, c[i * n + j]);
                }
            }
        };
        for (size_t i0 = 0; i0 < n; i0 += TILE) {
            for (size_t j0 = 0; j0 < n; j0 += TILE) {
                for (size_t k0 = 0; k0 < n; k0 += TILE) tile(i0, j0, k0);
            }
        }
    });
}

constexpr Workload WORKLOADS[] = {
    {"rsum", "ciphertexts", 2500, 40, 1 << 20, rsum},
    {"rstats", "ciphertexts", 2500, 40, 1 << 20, rstats},
    {"rmvmul", "rows and columns", 63, 8, 1 << 10, rmvmul},
    {"n_rmatmul", "rows and columns", 40, 6, 1 << 9, n_rmatmul},
    {"t_rmatmul", "rows and columns", 40, 10, 1 << 9, t_rmatmul},
};

}  // namespace

std::span<const Workload> workloads() { return WORKLOADS; }

}  // namespace osprey::ckks
