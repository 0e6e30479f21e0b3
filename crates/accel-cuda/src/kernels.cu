// The kernels of the `cuda` device. NVRTC compiles this file at run time; any C++ compiler compiles it too, behind
// `emulator/shim.h`, which is how the arithmetic is tested where there is no GPU.
//
// No branch and no address depends on a key or on data: AES is a boolean circuit over bit planes, products in the
// field of 2^128 elements are integer multiplications. So nothing of what another tenant of the GPU can time (caches,
// banks of shared memory, divergence) tells about secrets. Threads share nothing and no kernel has a barrier.
//
// Structures of arguments mirror those of `jobs.rs`: every field has 8 bytes.

typedef unsigned int u32;
typedef unsigned long long u64;

// A block as the host has it: 128 bits, low half first.
struct alignas(16) Block {
    u64 lo, hi;
};

enum Ring : u64 { Z128 = 0, Z64 = 1, Z2 = 2 };

static __device__ __forceinline__ u64 thread_index() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

// ---- Rings ----------------------------------------------------------------------------------------------------------

static __device__ __forceinline__ Block operator^(Block a, Block b) {
    return Block{a.lo ^ b.lo, a.hi ^ b.hi};
}

template <u64 RING> static __device__ __forceinline__ Block add(Block a, Block b) {
    if (RING == Z2) return a ^ b;
    u64 lo = a.lo + b.lo;
    u64 carry = RING == Z128 ? (u64)(lo < a.lo) : 0;
    return Block{lo, a.hi + b.hi + carry};
}

template <u64 RING> static __device__ __forceinline__ Block sub(Block a, Block b) {
    if (RING == Z2) return a ^ b;
    u64 borrow = RING == Z128 ? (u64)(a.lo < b.lo) : 0;
    return Block{a.lo - b.lo, a.hi - b.hi - borrow};
}

template <u64 RING> static __device__ __forceinline__ Block mul(Block a, Block b) {
    if (RING == Z2) return Block{a.lo & b.lo, a.hi & b.hi};
    if (RING == Z64) return Block{a.lo * b.lo, a.hi * b.hi};
    return Block{a.lo * b.lo, __umul64hi(a.lo, b.lo) + a.lo * b.hi + a.hi * b.lo};
}

// ---- AES-128 on bit planes ------------------------------------------------------------------------------------------
//
// Eight blocks in 32 planes of 32 bits: bit 8 column + block of plane [row][b] is bit b of the byte at that row and
// column. ShiftRows turns the bytes of a plane, MixColumns adds planes of other rows; both after Kaesper and Schwabe,
// "Faster and timing-attack resistant AES-GCM" (2009). The words of eight blocks become planes by a transposition of
// 8 x 8 bits in every byte, and one of 4 x 4 bytes.

#define ROUND_KEY_WORDS 352

static __device__ __forceinline__ u32 rotate_right(u32 x, u32 by) {
    return x >> by | x << (32 - by);
}

// Exchanges the bits of `y` under the mask with those of `x` that are `by` places higher.
static __device__ __forceinline__ void exchange(u32 &x, u32 &y, u32 by, u32 mask) {
    u32 t = (x >> by ^ y) & mask;
    y ^= t;
    x ^= t << by;
}

// Words to planes, and back: its own inverse.
static __device__ __forceinline__ void transpose(u32 (&w)[8]) {
#pragma unroll
    for (int j = 0; j < 8; j += 2) exchange(w[j], w[j + 1], 1, 0x55555555u);
#pragma unroll
    for (int j = 0; j < 8; j++) if (!(j & 2)) exchange(w[j], w[j + 2], 2, 0x33333333u);
#pragma unroll
    for (int j = 0; j < 4; j++) exchange(w[j], w[j + 4], 4, 0x0f0f0f0fu);
}

// The S-box: the circuit of Boyar and Peralta, "A depth-16 circuit for the AES S-box" (2011), in their names. Their U0
// and S0 are the highest bits.
static __device__ __forceinline__ void sub_bytes(u32 (&p)[8]) {
    u32 u0 = p[7], u1 = p[6], u2 = p[5], u3 = p[4], u4 = p[3], u5 = p[2], u6 = p[1], u7 = p[0];
    u32 y14 = u3 ^ u5, y13 = u0 ^ u6, y9 = u0 ^ u3, y8 = u0 ^ u5, t0 = u1 ^ u2;
    u32 y1 = t0 ^ u7, y4 = y1 ^ u3, y12 = y13 ^ y14, y2 = y1 ^ u0, y5 = y1 ^ u6, y3 = y5 ^ y8;
    u32 t1 = u4 ^ y12, y15 = t1 ^ u5, y20 = t1 ^ u1, y6 = y15 ^ u7, y10 = y15 ^ t0, y11 = y20 ^ y9;
    u32 y7 = u7 ^ y11, y17 = y10 ^ y11, y19 = y10 ^ y8, y16 = t0 ^ y11, y21 = y13 ^ y16, y18 = u0 ^ y16;
    // Inversion by way of the field of 16 elements.
    u32 t2 = y12 & y15, t7 = y13 & y16, t12 = y9 & y11;
    u32 t4 = (y3 & y6) ^ t2, t6 = (y4 & u7) ^ t2, t9 = (y5 & y1) ^ t7, t11 = (y2 & y7) ^ t7;
    u32 t14 = (y14 & y17) ^ t12, t16 = (y8 & y10) ^ t12;
    u32 t21 = t4 ^ t14 ^ y20, t22 = t6 ^ t16 ^ y19, t23 = t9 ^ t14 ^ y21, t24 = t11 ^ t16 ^ y18;
    u32 t25 = t21 ^ t22, t26 = t21 & t23, t30 = t23 ^ t24, t27 = t24 ^ t26;
    u32 t29 = (t25 & t27) ^ t22, t33 = ((t22 ^ t26) & t30) ^ t24, t36 = t24 & (t27 ^ t33);
    u32 t37 = t36 ^ t23 ^ t33, t40 = t25 ^ (t29 & (t27 ^ t36));
    u32 t41 = t40 ^ t37, t42 = t29 ^ t33, t43 = t29 ^ t40, t44 = t33 ^ t37, t45 = t42 ^ t41;
    u32 z0 = t44 & y15, z1 = t37 & y6, z2 = t33 & u7, z3 = t43 & y16, z4 = t40 & y1, z5 = t29 & y7;
    u32 z6 = t42 & y11, z7 = t45 & y17, z8 = t41 & y10, z9 = t44 & y12, z10 = t37 & y3, z11 = t33 & y4;
    u32 z12 = t43 & y13, z13 = t40 & y5, z14 = t29 & y2, z15 = t42 & y9, z16 = t45 & y14, z17 = t41 & y8;
    // Out of the tower, with the affine constant 0x63.
    u32 t46 = z15 ^ z16, t48 = z5 ^ z13, t53 = z0 ^ z3, t57 = z2 ^ z12 ^ t53, t58 = z4 ^ t46;
    u32 t59 = z3 ^ z6 ^ z7, t62 = z7 ^ z8 ^ t58, t63 = z9 ^ z10 ^ t58, t64 = z4 ^ t59;
    u32 t65 = z14 ^ t57 ^ t62, t66 = z1 ^ t63, s3 = t53 ^ t66;
    p[7] = t59 ^ t63;
    p[6] = ~(t64 ^ s3);
    p[5] = ~(z16 ^ z17 ^ t64 ^ t65);
    p[4] = s3;
    p[3] = z2 ^ z5 ^ t66;
    p[2] = z10 ^ z11 ^ t65;
    p[1] = ~(z12 ^ t48 ^ t62);
    p[0] = ~(t48 ^ t46 ^ t57);
}

// Exchanges rows and columns: byte c of word r becomes byte r of word c.
static __device__ __forceinline__ void transpose_bytes(u32 &w0, u32 &w1, u32 &w2, u32 &w3) {
    u32 a = __byte_perm(w0, w1, 0x5140), b = __byte_perm(w2, w3, 0x5140);
    u32 c = __byte_perm(w0, w1, 0x7362), d = __byte_perm(w2, w3, 0x7362);
    w0 = __byte_perm(a, b, 0x5410);
    w1 = __byte_perm(a, b, 0x7632);
    w2 = __byte_perm(c, d, 0x5410);
    w3 = __byte_perm(c, d, 0x7632);
}

struct Planes {
    u32 at[4][8];

    __device__ __forceinline__ void add_key(const u32 *keys) {
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int b = 0; b < 8; b++) at[r][b] ^= keys[8 * r + b];
    }

    // SubBytes, then ShiftRows: row r turns by r columns.
    __device__ __forceinline__ void sub_and_shift() {
#pragma unroll
        for (int r = 0; r < 4; r++) {
            sub_bytes(at[r]);
#pragma unroll
            for (int b = 0; b < 8 && r > 0; b++) at[r][b] = rotate_right(at[r][b], 8 * r);
        }
    }

    // The sum with the next row times x, plus all rows but its own.
    __device__ __forceinline__ void mix_columns() {
        u32 sum[4][8];
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int b = 0; b < 8; b++) sum[r][b] = at[r][b] ^ at[(r + 1) & 3][b];
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int b = 0; b < 8; b++) {
                u32 times = b == 0 ? sum[r][7] : b == 1 || b == 3 || b == 4 ? sum[r][b - 1] ^ sum[r][7] : sum[r][b - 1];
                at[r][b] ^= sum[0][b] ^ sum[2][b] ^ times;
            }
    }
};

struct Eight {
    Block at[8];
};

// The encryptions of prefix || counter + j step, j = 0 .. 7.
static __device__ __forceinline__ Eight encrypt_eight(const u32 *keys, u64 prefix, u64 counter, u64 step) {
    u32 w[4][8];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        u64 at = counter + j * step;
        w[0][j] = (u32)at;
        w[1][j] = (u32)(at >> 32);
        w[2][j] = (u32)prefix;
        w[3][j] = (u32)(prefix >> 32);
    }
    Planes p;
#pragma unroll
    for (int c = 0; c < 4; c++) transpose(w[c]);
#pragma unroll
    for (int b = 0; b < 8; b++) {
        transpose_bytes(w[0][b], w[1][b], w[2][b], w[3][b]);
#pragma unroll
        for (int r = 0; r < 4; r++) p.at[r][b] = w[r][b];
    }
    p.add_key(keys);
#pragma unroll 1
    for (int round = 1; round < 10; round++) {
        p.sub_and_shift();
        p.mix_columns();
        p.add_key(keys + 32 * round);
    }
    p.sub_and_shift();
    p.add_key(keys + 320);
#pragma unroll
    for (int b = 0; b < 8; b++) transpose_bytes(p.at[0][b], p.at[1][b], p.at[2][b], p.at[3][b]);
#pragma unroll
    for (int c = 0; c < 4; c++) transpose(p.at[c]);
    Eight out;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        out.at[j].lo = (u64)p.at[1][j] << 32 | p.at[0][j];
        out.at[j].hi = (u64)p.at[3][j] << 32 | p.at[2][j];
    }
    return out;
}

static __device__ u32 sub_word(u32 word) {
    u32 p[8] = {word, 0, 0, 0, 0, 0, 0, 0};
    transpose(p);
    sub_bytes(p);
    transpose(p);
    return p[0];
}

// Round keys as planes, the same for all blocks (FIPS 197, section 5.2).
static __device__ void expand_key(Block key, u32 *out) {
    u32 w[4] = {(u32)key.lo, (u32)(key.lo >> 32), (u32)key.hi, (u32)(key.hi >> 32)};
    u32 constant = 1;
    for (int round = 0; round <= 10; round++) {
        if (round > 0) {
            w[0] ^= sub_word(rotate_right(w[3], 8)) ^ constant;
            for (int i = 1; i < 4; i++) w[i] ^= w[i - 1];
            constant = constant << 1 ^ (constant >> 7) * 0x11bu;
        }
        for (int r = 0; r < 4; r++)
            for (int b = 0; b < 8; b++) {
                u32 plane = 0;
                for (int c = 0; c < 4; c++) plane |= (w[c] >> (8 * r + b) & 1) * 0xffu << 8 * c;
                out[32 * round + 8 * r + b] = plane;
            }
    }
}

// ---- The field of 2^128 elements ------------------------------------------------------------------------------------

// The product of polynomials over F2, by integer products of factors of which three bits in four are clear: at most
// eight terms meet in a group of four bits, so carries never leave it.
static __device__ __forceinline__ u64 carryless(u32 x, u32 y) {
    const u32 m = 0x11111111u;
    const u64 wide = 0x1111111111111111ull;
    u64 x0 = x & m, x1 = x & m << 1, x2 = x & m << 2, x3 = x & m << 3;
    u64 y0 = y & m, y1 = y & m << 1, y2 = y & m << 2, y3 = y & m << 3;
    u64 z0 = x0 * y0 ^ x1 * y3 ^ x2 * y2 ^ x3 * y1;
    u64 z1 = x0 * y1 ^ x1 * y0 ^ x2 * y3 ^ x3 * y2;
    u64 z2 = x0 * y2 ^ x1 * y1 ^ x2 * y0 ^ x3 * y3;
    u64 z3 = x0 * y3 ^ x1 * y2 ^ x2 * y1 ^ x3 * y0;
    return (z0 & wide) | (z1 & wide << 1) | (z2 & wide << 2) | (z3 & wide << 3);
}

static __device__ __forceinline__ Block carryless_wide(u64 x, u64 y) {
    u32 x0 = (u32)x, x1 = (u32)(x >> 32), y0 = (u32)y, y1 = (u32)(y >> 32);
    u64 lo = carryless(x0, y0), hi = carryless(x1, y1), middle = carryless(x0 ^ x1, y0 ^ y1) ^ lo ^ hi;
    return Block{lo ^ middle << 32, hi ^ middle >> 32};
}

// The product modulo x^128 + x^7 + x^2 + x + 1.
static __device__ Block field_product(Block x, Block y) {
    Block lo = carryless_wide(x.lo, y.lo), hi = carryless_wide(x.hi, y.hi);
    Block middle = carryless_wide(x.lo ^ x.hi, y.lo ^ y.hi) ^ lo ^ hi;
    u64 r0 = lo.lo, r1 = lo.hi ^ middle.lo, r2 = hi.lo ^ middle.hi, r3 = hi.hi;
    // x^128 = x^7 + x^2 + x + 1: what passes x^128 again has degree below 7.
    u64 over = r3 >> 63 ^ r3 >> 62 ^ r3 >> 57;
    r0 ^= r2 ^ r2 << 1 ^ r2 << 2 ^ r2 << 7 ^ over ^ over << 1 ^ over << 2 ^ over << 7;
    r1 ^= r3 ^ (r3 << 1 | r2 >> 63) ^ (r3 << 2 | r2 >> 62) ^ (r3 << 7 | r2 >> 57);
    return Block{r0, r1};
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

// What a session's keys become: round keys of the three streams; h^(2^k), k = 0 .., of the three tags.
#define POWERS 17
struct Keys {
    u32 round_keys[3][ROUND_KEY_WORDS];
    Block powers[3][POWERS];
};

// Thread k < 3 expands stream key k, thread 3 + k squares tag element k.
struct Expand {
    const Block *raw;
    Keys *keys;
};
extern "C" __global__ void expand(Expand job) {
    u64 t = thread_index();
    if (t < 3) {
        expand_key(job.raw[t], job.keys->round_keys[t]);
    } else if (t < 6) {
        Block power = job.raw[t];
        for (int k = 0; k < POWERS; k++) {
            job.keys->powers[t - 3][k] = power;
            power = field_product(power, power);
        }
    }
}

// The local products of one block: A, B (A of the seat before) and C.
template <u64 RING> struct Products {
    Block a, b, c;

    __device__ __forceinline__ void add_term(Block x0, Block x1, Block x2, Block y0, Block y1, Block y2) {
        a = add<RING>(a, add<RING>(mul<RING>(x1, add<RING>(y1, y2)), mul<RING>(x2, y1)));
        b = add<RING>(b, add<RING>(mul<RING>(x0, add<RING>(y0, y1)), mul<RING>(x1, y0)));
        c = add<RING>(c, add<RING>(mul<RING>(x0, y2), mul<RING>(x2, y0)));
    }
};

// Parts 0 to 2 of two factors; term t of block i lies at t * stride + i.
struct Factors {
    const Block *x[3], *y[3];
    u64 stride;
};
template <u64 RING>
static __device__ __forceinline__ void add_term(Products<RING> &sums, const Factors &f, u64 term, u64 i) {
    u64 at = term * f.stride + i;
    sums.add_term(f.x[0][at], f.x[1][at], f.x[2][at], f.y[0][at], f.y[1][at], f.y[2][at]);
}

// Local products A, B and C, summed over the terms of a slice: a thread per block and slice; of each `slices` runs.
struct Cross {
    u64 ring, blocks, terms, slices, goes_on;
    Factors factors;
    Block *a, *b, *c;
};
template <u64 RING> static __device__ __forceinline__ void cross_in(const Cross &job) {
    u64 t = thread_index(), all = job.blocks * job.slices;
    if (t >= all) return;
    u64 slice = t / job.blocks, i = t - slice * job.blocks;
    Block zero = {0, 0};
    Products<RING> sums = {zero, zero, zero};
    if (job.goes_on) sums = {job.a[t], job.b[t], job.c[t]};
    for (u64 term = slice; term < job.terms; term += job.slices) add_term<RING>(sums, job.factors, term, i);
    job.a[t] = sums.a;
    job.b[t] = sums.b;
    job.c[t] = sums.c;
}
extern "C" __global__ void cross(Cross job) {
    if (job.ring == Z128) cross_in<Z128>(job);
    else if (job.ring == Z64) cross_in<Z64>(job);
    else cross_in<Z2>(job);
}

// A stream under the key of a part.
struct Stream {
    u64 prefix, part;
};

// Eight blocks of a vector that a thread works on: those of a warp lie side by side for every j.
struct Places {
    u64 first, blocks;

    static __device__ __forceinline__ Places of_thread(u64 t, u64 blocks) {
        return Places{t / 32 * 256 + t % 32, blocks};
    }
    static __device__ __forceinline__ Places of(u64 blocks) { return of_thread(thread_index(), blocks); }
    __device__ __forceinline__ bool none() const { return first >= blocks; }
    __device__ __forceinline__ u64 at(int j) const { return first + 32 * j; }
    __device__ __forceinline__ bool there(int j) const { return at(j) < blocks; }
    __device__ __forceinline__ Eight stream(const Keys *keys, const Stream &stream, u64 counter) const {
        return encrypt_eight(keys->round_keys[stream.part], stream.prefix, counter + first, 32);
    }
};

// Streams of `seal`, in the order of the fields below.
enum SealStream { OWN_A, VOUCHED_A, FOURTH_A, PRODUCT_C, FOURTH_C, WIRE_A, WIRE_VOUCHED_A, WIRE_C, SEAL_STREAMS };

// The rest of stage 1. `a`, `b` and `c` are local products, of `slices` runs each; the first run becomes A, the A that is
// vouched for, and C, which is sent or vouched for; `z` gets parts of the result. Blocks from `middle` on lie in the second
// half of a vector: the second of `sends` and `receives` holds there, and `second` are the streams of C.
struct Seal {
    u64 ring, blocks, slices, first, middle, sends[2], receives[2], masked, vouches;
    Stream streams[SEAL_STREAMS], second[2];
    const Keys *keys;
    Block *drawn, *a, *b, *c, *z[3];

    __device__ __forceinline__ int half(u64 i) const { return i >= middle; }
    __device__ __forceinline__ bool has(int stream, int half) const {
        if (stream == FOURTH_C) return !receives[half];
        if (stream < WIRE_A) return true;
        return masked && (stream == WIRE_A || vouches || (stream == WIRE_C && sends[half]));
    }
    __device__ __forceinline__ const Stream &stream(int stream, int half) const {
        if (half && stream == PRODUCT_C) return second[0];
        if (half && stream == WIRE_C) return second[1];
        return streams[stream];
    }
    template <u64 RING> __device__ __forceinline__ void add_slices(u64 i) const {
        for (u64 slice = 1; slice < slices; slice++) {
            u64 from = slice * blocks + i;
            a[i] = add<RING>(a[i], a[from]);
            b[i] = add<RING>(b[i], b[from]);
            c[i] = add<RING>(c[i], c[from]);
        }
    }
};

// What streams do to a block.
struct Sealed {
    Block *a, *b, *c, *z0, *z1, *z2;

    template <u64 RING> __device__ __forceinline__ void apply(int stream, bool sends, Block rho) const {
        switch (stream) {
            case OWN_A:  // The stream goes to part 2 and the message to part 1.
                *z2 = rho;
                *z1 = *a = sub<RING>(*a, rho);
                break;
            case VOUCHED_A:  // A of the seat before, vouched for.
                *z1 = add<RING>(*z1, rho);
                *z0 = *b = sub<RING>(*b, rho);
                break;
            case FOURTH_A:  // A of which this seat is the fourth.
                *z0 = add<RING>(*z0, rho);
                break;
            case PRODUCT_C: {
                Block rest = *c = sub<RING>(*c, rho);
                *z0 = add<RING>(*z0, sends ? rest : rho);
                *z2 = add<RING>(*z2, sends ? rho : rest);
                break;
            }
            case FOURTH_C: *z1 = add<RING>(*z1, rho); break;
            case WIRE_A: *a = add<RING>(*a, rho); break;
            case WIRE_VOUCHED_A: *b = add<RING>(*b, rho); break;
            default: *c = add<RING>(*c, rho);
        }
    }
};

template <u64 RING> static __device__ __forceinline__ void seal_in(const Seal &job) {
    Places places = Places::of(job.blocks);
    if (places.none()) return;
#pragma unroll
    for (int j = 0; j < 8; j++)
        if (places.there(j)) job.add_slices<RING>(places.at(j));
    int half = job.half(places.first);
#pragma unroll 1
    for (int stream = 0; stream < SEAL_STREAMS; stream++) {
        if (!job.has(stream, half)) continue;
        Eight rho = places.stream(job.keys, job.stream(stream, half), job.first);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (!places.there(j)) continue;
            u64 i = places.at(j);
            Sealed block = {job.a + i, job.b + i, job.c + i, job.z[0] + i, job.z[1] + i, job.z[2] + i};
            block.apply<RING>(stream, job.sends[half], rho.at[j]);
        }
    }
}
extern "C" __global__ void seal(Seal job) {
    if (job.ring == Z128) seal_in<Z128>(job);
    else if (job.ring == Z64) seal_in<Z64>(job);
    else seal_in<Z2>(job);
}

// The same in two kernels, for chunks that do not fill a GPU: a thread draws eight blocks of one stream to where all of
// them have room, then a thread takes what all streams have for a block, and leaves zeros there.
extern "C" __global__ void seal_streams(Seal job) {
    u64 each = (job.blocks + 255) / 256 * 32;
    int stream = (int)(thread_index() / each);
    Places places = Places::of_thread(thread_index() % each, job.blocks);
    if (stream >= SEAL_STREAMS || places.none()) return;
    int half = job.half(places.first);
    if (!job.has(stream, half)) return;
    Eight rho = places.stream(job.keys, job.stream(stream, half), job.first);
#pragma unroll
    for (int j = 0; j < 8; j++)
        if (places.there(j)) job.drawn[stream * job.blocks + places.at(j)] = rho.at[j];
}
template <u64 RING> static __device__ __forceinline__ void seal_drawn_in(const Seal &job) {
    u64 i = thread_index();
    if (i >= job.blocks) return;
    job.add_slices<RING>(i);
    int half = job.half(i);
    Block zero = {0, 0}, a = job.a[i], b = job.b[i], c = job.c[i], z0 = zero, z1 = zero, z2 = zero;
    Sealed block = {&a, &b, &c, &z0, &z1, &z2};
#pragma unroll
    for (int stream = 0; stream < SEAL_STREAMS; stream++) {
        if (!job.has(stream, half)) continue;
        Block *rho = job.drawn + stream * job.blocks + i;
        block.apply<RING>(stream, job.sends[half], *rho);
        *rho = zero;
    }
    job.a[i] = a;
    job.b[i] = b;
    job.c[i] = c;
    job.z[0][i] = z0;
    job.z[1][i] = z1;
    job.z[2][i] = z2;
}
extern "C" __global__ void seal_drawn(Seal job) {
    if (job.ring == Z128) seal_drawn_in<Z128>(job);
    else if (job.ring == Z64) seal_drawn_in<Z64>(job);
    else seal_drawn_in<Z2>(job);
}

// Stage 2: parts 1 and 2 get what arrived, C to part 1 and A to part 2, each by threads of its own. Halves are as above.
struct Fold {
    u64 ring, blocks, first, middle, receives[2], masked;
    Stream wire_a, wire_c;
    const Keys *keys;
    const Block *a, *c;
    Block *z1, *z2;
};
template <u64 RING> static __device__ __forceinline__ void fold_in(const Fold &job) {
    u64 each = (job.blocks + 255) / 256 * 32;
    Places places = Places::of_thread(thread_index() % each, job.blocks);
    bool of_c = thread_index() / each == 1;
    if (thread_index() / each > 1 || places.none() || (of_c && !job.receives[places.first >= job.middle])) return;
    const Block *from = of_c ? job.c : job.a;
    Block *z = of_c ? job.z1 : job.z2;
    Eight wire = {};
    if (job.masked) wire = places.stream(job.keys, of_c ? job.wire_c : job.wire_a, job.first);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (!places.there(j)) continue;
        u64 i = places.at(j);
        z[i] = add<RING>(z[i], sub<RING>(from[i], wire.at[j]));
    }
}
extern "C" __global__ void fold(Fold job) {
    if (job.ring == Z128) fold_in<Z128>(job);
    else if (job.ring == Z64) fold_in<Z64>(job);
    else fold_in<Z2>(job);
}

// A level of the tree of digests, of each piece of so many blocks, the last one perhaps shorter: x of n blocks becomes
// 2^log blocks y such that sum x_i h^(n - i) is sum y_t h^(2^log - t): the digest of y is that of x. Thread t of a piece
// takes every 2^log-th block by Horner's rule; blocks that are missing in front count as zero.
struct Digest {
    u64 blocks, piece, log, part;
    const Keys *keys;
    const Block *x;
    Block *y;
};
extern "C" __global__ void digest(Digest job) {
    u64 threads = 1ull << job.log, t = thread_index() & (threads - 1), from = (thread_index() >> job.log) * job.piece;
    if (from >= job.blocks) return;
    u64 blocks = job.blocks - from < job.piece ? job.blocks - from : job.piece;
    const Block *powers = job.keys->powers[job.part], *x = job.x + from;
    u64 rounds = (blocks + threads - 1) >> job.log, missing = (rounds << job.log) - blocks;
    Block zero = {0, 0}, sum = zero, step = powers[job.log];
    if (t >= missing) sum = x[t - missing];
    for (u64 r = 1; r < rounds; r++) sum = field_product(sum, step) ^ x[(r << job.log) + t - missing];
    job.y[thread_index()] = sum;
}

// ---- Local steps on vectors that stay -------------------------------------------------------------------------------

#define STEP_TERMS 8

// A run of blocks, and how far it is to that of the next part.
struct RunPlace {
    Block *at;
    u64 part;
};

// A block of a run, thread by thread: all blocks of a part, then of the next.
struct RunThread {
    u64 part, i;

    __device__ __forceinline__ RunThread(u64 blocks) : part(thread_index() / blocks), i(thread_index() % blocks) {}
    __device__ __forceinline__ Block *at(const RunPlace &run) const { return run.at + part * run.part + i; }
};

// The sum of multiples of blocks, and of a constant in one part.
struct CombineTerm {
    RunPlace x;
    u64 factor[2];
};
struct Combine {
    u64 ring, parts, blocks, terms, at, constant[2];
    RunPlace z;
    CombineTerm of[STEP_TERMS];
};
template <u64 RING> static __device__ __forceinline__ void combine_in(const Combine &job) {
    RunThread here(job.blocks);
    if (here.part >= job.parts) return;
    Block sum = {0, 0};
    if (here.part == job.at) sum = Block{job.constant[0], job.constant[1]};
    for (u64 t = 0; t < job.terms; t++) {
        const CombineTerm &term = job.of[t];
        sum = add<RING>(sum, mul<RING>(*here.at(term.x), Block{term.factor[0], term.factor[1]}));
    }
    *here.at(job.z) = sum;
}
extern "C" __global__ void combine(Combine job) {
    if (job.ring == Z128) combine_in<Z128>(job);
    else if (job.ring == Z64) combine_in<Z64>(job);
    else combine_in<Z2>(job);
}

// A stream, added to something or subtracted from it.
struct Draw {
    u64 ring, blocks, first, negative;
    Stream stream;
    const Keys *keys;
    const Block *x;
    Block *z;
};
template <u64 RING> static __device__ __forceinline__ void draw_in(const Draw &job) {
    Places places = Places::of(job.blocks);
    if (places.none()) return;
    Eight rho = places.stream(job.keys, job.stream, job.first);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (!places.there(j)) continue;
        u64 i = places.at(j);
        Block start = {0, 0};
        if (job.x) start = job.x[i];
        job.z[i] = job.negative ? sub<RING>(start, rho.at[j]) : add<RING>(start, rho.at[j]);
    }
}
extern "C" __global__ void draw(Draw job) {
    if (job.ring == Z128) draw_in<Z128>(job);
    else if (job.ring == Z64) draw_in<Z64>(job);
    else draw_in<Z2>(job);
}

// Sums of products of parts of shares.
struct Local {
    u64 ring, blocks, terms;
    Block *z;
    const Block *of[STEP_TERMS][2];
};
template <u64 RING> static __device__ __forceinline__ void local_in(const Local &job) {
    u64 i = thread_index();
    if (i >= job.blocks) return;
    Block sum = {0, 0};
    for (u64 t = 0; t < job.terms; t++) sum = add<RING>(sum, mul<RING>(job.of[t][0][i], job.of[t][1][i]));
    job.z[i] = sum;
}
extern "C" __global__ void local(Local job) {
    if (job.ring == Z128) local_in<Z128>(job);
    else if (job.ring == Z64) local_in<Z64>(job);
    else local_in<Z2>(job);
}

static __device__ __forceinline__ u64 shift_word(u64 x, u64 by, u64 fill) {
    return by == 0 ? x : x >> by | fill << (64 - by);
}

static __device__ __forceinline__ u64 low_ones(u64 bits) {
    return bits >= 64 ? ~0ull : (1ull << bits) - 1;
}

// An element of 128 bits, by a public number of bits below 128; of two's complement with its sign.
static __device__ __forceinline__ Block shift_wide(Block x, u64 by, u64 is_signed) {
    u64 fill = is_signed ? 0 - (x.hi >> 63) : 0;
    if (by >= 64) return Block{shift_word(x.hi, by - 64, fill), fill};
    return Block{shift_word(x.lo, by, x.hi), shift_word(x.hi, by, fill)};
}

// Elements divided by a power of two, of which some low bits are kept.
struct Shift {
    u64 wide, parts, blocks, by, is_signed, keep;
    RunPlace x, z;
};
extern "C" __global__ void shift(Shift job) {
    RunThread here(job.blocks);
    if (here.part >= job.parts) return;
    Block x = *here.at(job.x);
    if (job.wide) {
        x = shift_wide(x, job.by, job.is_signed);
        x.lo &= low_ones(job.keep);
        x.hi &= job.keep > 64 ? low_ones(job.keep - 64) : 0;
    } else {
        x.lo = shift_word(x.lo, job.by, job.is_signed ? 0 - (x.lo >> 63) : 0) & low_ones(job.keep);
        x.hi = shift_word(x.hi, job.by, job.is_signed ? 0 - (x.hi >> 63) : 0) & low_ones(job.keep);
    }
    *here.at(job.z) = x;
}

// Rows and columns of 32 x 32 bits: its own inverse.
static __device__ __forceinline__ void transpose_32(u32 (&w)[32]) {
#pragma unroll
    for (int j = 0; j < 32; j++) if (!(j & 1)) exchange(w[j], w[j + 1], 1, 0x55555555u);
#pragma unroll
    for (int j = 0; j < 32; j++) if (!(j & 2)) exchange(w[j], w[j + 2], 2, 0x33333333u);
#pragma unroll
    for (int j = 0; j < 32; j++) if (!(j & 4)) exchange(w[j], w[j + 4], 4, 0x0f0f0f0fu);
#pragma unroll
    for (int j = 0; j < 32; j++) if (!(j & 8)) exchange(w[j], w[j + 8], 8, 0x00ff00ffu);
#pragma unroll
    for (int j = 0; j < 16; j++) exchange(w[j], w[j + 16], 16, 0x0000ffffu);
}

// A tile of 32 elements and one word of 32 of their bits, thread by thread: all tiles of a word, then the next word,
// then the next part. Tiles fill whole blocks of planes.
struct Tile {
    u64 tile, word, part, elements;

    __device__ __forceinline__ Tile(u64 blocks, u64 wide, u64 words) : elements(wide ? blocks : 2 * blocks) {
        u64 tiles = (elements + 127) / 128 * 4, t = thread_index();
        tile = t % tiles;
        word = t / tiles % words;
        part = t / tiles / words;
    }
};

struct ToPlanes {
    u64 wide, parts, blocks, from, width, stride;
    RunPlace x, z;
};
extern "C" __global__ void to_planes(ToPlanes job) {
    Tile here(job.blocks, job.wide, (job.width + 31) / 32);
    if (here.part >= job.parts) return;
    const Block *x = job.x.at + here.part * job.x.part;
    u64 bit = job.from + 32 * here.word;
    u32 w[32];
#pragma unroll
    for (int i = 0; i < 32; i++) {
        u64 e = 32 * here.tile + i;
        w[i] = 0;
        if (e >= here.elements) continue;
        Block element = {0, 0};
        if (job.wide) element = x[e];
        else element.lo = e & 1 ? x[e / 2].hi : x[e / 2].lo;
        w[i] = (u32)shift_wide(element, bit, 0).lo;
    }
    transpose_32(w);
#pragma unroll
    for (int j = 0; j < 32; j++) {
        u64 plane = 32 * here.word + j;
        if (plane < job.width) ((u32 *)(job.z.at + here.part * job.z.part + plane * job.stride))[here.tile] = w[j];
    }
}

struct ToElements {
    u64 wide, parts, blocks, width, stride;
    RunPlace x, z;
};
extern "C" __global__ void to_elements(ToElements job) {
    u64 words = job.wide ? 4 : 2;
    Tile here(job.blocks, job.wide, words);
    if (here.part >= job.parts) return;
    u32 w[32];
#pragma unroll
    for (int j = 0; j < 32; j++) {
        u64 plane = 32 * here.word + j;
        w[j] = 0;
        if (plane < job.width) w[j] = ((const u32 *)(job.x.at + here.part * job.x.part + plane * job.stride))[here.tile];
    }
    transpose_32(w);
#pragma unroll
    for (int i = 0; i < 32; i++) {
        u64 e = 32 * here.tile + i;
        if (e < here.elements) ((u32 *)(job.z.at + here.part * job.z.part))[e * words + here.word] = w[i];
    }
}
