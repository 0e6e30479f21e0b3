// What the kernels need of CUDA, for a C++ compiler: a thread is a call, a grid is a loop (see driver.cpp). Include it
// after all headers of the library, which have uses of their own for some of these names.
#pragma once

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__

struct Index {
    unsigned x;
};
static thread_local Index threadIdx, blockIdx, blockDim;

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

// Four of the eight bytes of two words, by a digit each.
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned out = 0;
    for (unsigned i = 0; i < 4; i++) out |= (unsigned)(both >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
    return out;
}
