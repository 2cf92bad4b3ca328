// What the scratchpad's kernels ask of CUDA, on a processor. The threads of a block are fibers of one thread; what a warp does together (shuffles,
// products on tensor cores) waits until all its lanes have come. Slow, exact about who holds which number, and blind to races.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <utility>

using std::max;
using std::min;

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
extern unsigned char memory[1 << 18];

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

inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline float __shfl_xor_sync(unsigned, float x, int by, int = 32) {
    return together({__float_as_uint(x)}, [=] { return __uint_as_float(shown_by(lane_here() ^ by).words[0]); });
}
inline unsigned __ballot_sync(unsigned, bool one) {
    return together({one}, [] { unsigned all = 0; for (int lane = 0; lane < 32; lane++) all |= shown_by(lane).words[0] << lane; return all; });
}
inline unsigned __reduce_max_sync(unsigned, unsigned x) {
    return together({x}, [] { unsigned most = 0; for (int lane = 0; lane < 32; lane++) most = max(most, shown_by(lane).words[0]); return most; });
}
inline unsigned atomicMax(unsigned* at, unsigned x) { return std::exchange(*at, max(*at, x)); }

inline unsigned atomicAdd(unsigned* at, unsigned x) { return std::exchange(*at, *at + x); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sin(M_PI * x), *cosine = cos(M_PI * x); }
// The compiler is told not to contract.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }

// Halves, two to a word.
inline float half_of(unsigned word, int high) { uint16_t bits = high ? word >> 16 : word; _Float16 x; memcpy(&x, &bits, 2); return (float)x; }
inline unsigned halves(float low, float high) {
    _Float16 both[2] = {(_Float16)low, (_Float16)high};
    unsigned word;
    memcpy(&word, both, 4);
    return word;
}
inline unsigned tf32(float x) { return (__float_as_uint(x) + 0x1000u) & ~0x1fffu; }
inline float power_of_two(float x) { return exp2f(x); }
inline unsigned shared_address(const void* p) { return (unsigned)((const unsigned char*)p - memory); }

// ldmatrix, of four matrices of 8 rows of 16 bytes: the lanes 8 q .. 8 q + 7 say where the rows of matrix q begin.
inline void load_matrices(unsigned (&m)[4], unsigned address) {
    together({address}, [&] {
        for (int q = 0; q < 4; q++) memcpy(&m[q], memory + shown_by(8 * q + lane_here() / 4).words[0] + lane_here() % 4 * 4, 4);
        return 0;
    });
}
inline void load_transposed(unsigned (&m)[4], unsigned address) {
    together({address}, [&] {
        for (int q = 0; q < 4; q++) {
            uint16_t two[2];
            for (int k = 0; k < 2; k++) memcpy(&two[k], memory + shown_by(8 * q + lane_here() % 4 * 2 + k).words[0] + lane_here() / 4 * 2, 2);
            m[q] = two[0] | (unsigned)two[1] << 16;
        }
        return 0;
    });
}
// movmatrix
inline unsigned transposed(unsigned word) {
    return together({word}, [] {
        auto at = [](int row, int column) { unsigned word = shown_by(4 * row + column / 2).words[0]; return column % 2 ? word >> 16 : word & 0xffff; };
        int g = lane_here() / 4, t = lane_here() % 4;
        return at(2 * t, g) | at(2 * t + 1, g) << 16;
    });
}
// mma.m16n8k16 of halves
inline void multiply_onto(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, const float (&c)[4]) {
    float begin[4] = {c[0], c[1], c[2], c[3]};
    together({a[0], a[1], a[2], a[3], b0, b1}, [&] {
        auto left = [](int row, int k) { return half_of(shown_by(row % 8 * 4 + k % 8 / 2).words[row / 8 + k / 8 * 2], k % 2); };
        auto right = [](int k, int column) { return half_of(shown_by(column * 4 + k % 8 / 2).words[4 + k / 8], k % 2); };
        for (int e = 0; e < 4; e++) {
            double sum = begin[e];
            for (int k = 0; k < 16; k++) sum += (double)left(lane_here() / 4 + e / 2 * 8, k) * right(k, lane_here() % 4 * 2 + e % 2);
            d[e] = sum;
        }
        return 0;
    });
}
inline void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { multiply_onto(c, a, b0, b1, c); }
// mma.m16n8k8 in TF32
inline void multiply_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    together({a[0], a[1], a[2], a[3], b0, b1}, [&] {
        auto left = [](int row, int k) { return __uint_as_float(shown_by(row % 8 * 4 + k % 4).words[row / 8 + k / 4 * 2]); };
        auto right = [](int k, int column) { return __uint_as_float(shown_by(column * 4 + k % 4).words[4 + k / 4]); };
        for (int e = 0; e < 4; e++) {
            double sum = c[e];
            for (int k = 0; k < 8; k++) sum += (double)left(lane_here() / 4 + e / 2 * 8, k) * right(k, lane_here() % 4 * 2 + e % 2);
            c[e] = sum;
        }
        return 0;
    });
}

// Run a kernel's body for every thread of a grid, one block after the other.
void launch(Dimensions grid, unsigned threads, std::function<void()> kernel);
