// CUDA's C++ on a processor, as much as the kernels ask for. The threads of a block are fibers of one thread; what a warp does together (shuffles, here,
// and products on tensor cores, in instructions.hpp) waits until all its lanes have come. Slow, exact about who holds which number, and blind to
// races but for barriers that are missing.
#pragma once
#include <math.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#define EMULATED

struct Dimensions { unsigned x, y, z; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

extern Dimensions blockIdx, blockDim, gridDim;
unsigned current_thread();
#define threadIdx (Dimensions{current_thread(), 0u, 0u})
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

void wait_for_block();
void wait_for_warp();
#define __syncthreads() wait_for_block()
#define __syncwarp() wait_for_warp()

// A block's dynamic shared memory.
extern unsigned char dynamic_memory[1 << 18];

// What a lane shows the others of its warp.
struct Shown { unsigned words[8]; };
extern Shown shown[32][32];
inline int lane_here() { return current_thread() % 32; }
inline Shown& shown_by(int lane) { return shown[current_thread() / 32][lane]; }

// What all lanes find out once each has shown its words.
template <class Find>
auto together(std::initializer_list<unsigned> words, Find find) {
    std::copy(words.begin(), words.end(), shown_by(lane_here()).words);
    wait_for_warp();
    auto found = find();
    wait_for_warp();
    return found;
}

// Between two types, too.
template <class A, class B>
std::common_type_t<A, B> max(A a, B b) { return a < b ? (std::common_type_t<A, B>)b : (std::common_type_t<A, B>)a; }
template <class A, class B>
std::common_type_t<A, B> min(A a, B b) { return b < a ? (std::common_type_t<A, B>)b : (std::common_type_t<A, B>)a; }

inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(unsigned bits) { return __builtin_ffs((int)bits); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }

// The words of the lane `from`.
template <class T>
T shuffled(T x, int from) {
    unsigned words[2] = {};
    memcpy(words, &x, sizeof x);
    return together({words[0], words[1]}, [=] { T found; memcpy(&found, shown_by(from).words, sizeof found); return found; });
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int by, int = 32) { return shuffled(x, lane_here() ^ by); }
template <class T>
T __shfl_sync(unsigned, T x, int from) { return shuffled(x, from); }
inline unsigned __ballot_sync(unsigned, bool one) {
    return together({one}, [] { unsigned all = 0; for (int lane = 0; lane < 32; lane++) all |= shown_by(lane).words[0] << lane; return all; });
}
inline bool __all_sync(unsigned, bool one) { return __ballot_sync(~0u, one) == ~0u; }
inline unsigned __reduce_max_sync(unsigned, unsigned x) {
    return together({x}, [] { unsigned most = 0; for (int lane = 0; lane < 32; lane++) most = max(most, shown_by(lane).words[0]); return most; });
}
template <class T>
T atomicMax(T* at, T x) { return std::exchange(*at, max(*at, x)); }
inline unsigned atomicAdd(unsigned* at, unsigned x) { return std::exchange(*at, *at + x); }

inline float __expf(float x) { return expf(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sin(M_PI * x), *cosine = cos(M_PI * x); }
// The compiler is told not to contract.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }

// Run a kernel's body for every thread of a grid, one block after the other.
void launch(Dimensions grid, unsigned threads, std::function<void()> kernel);

#include "instructions.hpp"
