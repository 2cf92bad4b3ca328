// Compiled at start by NVRTC for one shape: D (width), HEADS, FF (feed-forward width), CONCAT (1: embeddings side by side); and for one
// type of numbers, NUMBER: float, or double to tell rounding from truth. Weights, moments and labels are kept as floats in both.
// The length n is an argument. R replicas are the last dimension of every grid.
//
// Names used throughout: r replica, b string, i and j positions, x bits, t = 2 i + x a token (2n of them), P parameters of a replica.
// A LayerNorm's output is kept as its normalised input xhat; scale and shift are folded into what reads it.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef NUMBER number; // what networks are computed in; literals such as 0.f and 2.f are exact in both types

#define EPS ((number)1e-5)
#define THREADS 256

// A row of D numbers lies in a group of LANES lanes of one warp, PER numbers each: lane l holds the columns l + LANES * k.
#define LANES (D > 16 ? 32 : D > 8 ? 16 : D > 4 ? 8 : D > 2 ? 4 : 2)
#define PER ((D + LANES - 1) / LANES)
#define GROUPS (THREADS / LANES)

// A table of exp(score - the largest of its row of the table of scores) serves all strings: a string's attention weights are its entries
// over their sum. Where that sum is below this, the largest is not among the string's scores and its entries have lost digits; then the
// weights are computed from the scores and the string's own largest.
#define LEAST_SUM 0x1p-20f

#define EACH(k) for (int k = 0, c = lane; k < PER; k++, c += LANES)

__device__ __forceinline__ number sum_over_group(number v) {
#pragma unroll
    for (int o = LANES / 2; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o, LANES);
    return v;
}

__device__ __forceinline__ void load(number* v, const number* row, int lane) {
#pragma unroll
    EACH(k) v[k] = c < D ? row[c] : 0.f;
}

__device__ __forceinline__ void store(number* row, const number* v, int lane) {
#pragma unroll
    EACH(k) if (c < D) row[c] = v[k];
}

__device__ __forceinline__ number sum_over_warp(number v) {
#pragma unroll
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

__device__ __forceinline__ number max_over_warp(number v) {
#pragma unroll
    for (int o = 16; o > 0; o /= 2) v = fmax(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

// The sum over a block of THREADS threads, in thread 0.
__device__ double sum_over_block(double v) {
    __shared__ double sums[THREADS];
    sums[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    double total = sums[0];
    __syncthreads();
    return total;
}
