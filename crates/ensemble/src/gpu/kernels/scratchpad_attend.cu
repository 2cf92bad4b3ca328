#define KEYS 16 // that a warp reads at a time
#define ONES 0x3c003c00u // two halves

// 2^x by additions and multiplications, since the units that make powers of two are few; off by at most 7.5e-5 of it, a half's rounding by 4.9e-4.
__device__ __forceinline__ float power_by_polynomial(float x) {
    x = fminf(fmaxf(x, -126.f), 127.f);
    float whole = x + 12582912.f, rest = x - (whole - 12582912.f); // the sum's last bit counts ones
    float power = fmaf(fmaf(fmaf(0.05517167f, rest, 0.24261113f), rest, 0.69326099f), rest, 0.99992807f);
    return __uint_as_float(__float_as_uint(power) + (__float_as_uint(whole) << 23));
}

// A warp's 32 queries, from `first` on, which see the keys before `end`, and all of them those before `open`.
struct Queries {
    u32 q[2][4];
    int first, n, causal, open, end;
    u32 keys, values; // where the lane begins to read in shared memory
};

// Scores: of queries g and g + 8 of 16 m and the keys 8 k + 2 t and the next, of 16.
typedef float Scores[2][2][4];

#define EACH_SCORE                     \
    _Pragma("unroll") for (int m = 0; m < 2; m++)     \
        _Pragma("unroll") for (int k = 0; k < 2; k++) \
            _Pragma("unroll") for (int e = 0; e < 4; e++)

// Those with 16 keys, onto `sums`.
__device__ __forceinline__ void score(Scores& s, const Queries& of, int start, const float (&sums)[2][4]) {
    u32 k[4];
    load_matrices(k, of.keys + start * 32);
#pragma unroll
    for (int m = 0; m < 2; m++) {
        multiply_onto(s[m][0], of.q[m], k[0], k[1], sums[m]);
        multiply_onto(s[m][1], of.q[m], k[2], k[3], sums[m]);
    }
}

// Minus infinity where there is no key, or none to be seen.
__device__ __forceinline__ void hide(Scores& s, const Queries& of, int start) {
    int lane = threadIdx.x % 32;
    EACH_SCORE {
        int key = start + 8 * k + 2 * (lane % 4) + e % 2, query = of.first + 16 * m + lane / 4 + e / 2 * 8;
        if (key >= of.n || (of.causal && key > query)) s[m][k][e] = -ENDLESS;
    }
}

// Minus the largest score of each query with the keys from `start` to before `end`: of queries g and g + 8 of 16, twice each.
__device__ __forceinline__ void find_largest(float (&minus)[2][4], const Queries& of, int start, int end) {
    const float none[2][4] = {};
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int e = 0; e < 4; e++) minus[m][e] = ENDLESS;
    for (; start < end; start += KEYS) {
        Scores s;
        score(s, of, start, none);
        hide(s, of, start);
        EACH_SCORE minus[m][e] = fminf(minus[m][e], -s[m][k][e]);
    }
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float least = fminf(minus[m][2 * half], minus[m][2 * half + 1]);
            least = fminf(least, __shfl_xor_sync(0xffffffffu, least, 1));
            least = fminf(least, __shfl_xor_sync(0xffffffffu, least, 2));
            minus[m][2 * half] = minus[m][2 * half + 1] = least;
        }
}

// Adds to the values' sums by weights, o[.][0] and o[.][1], and to the weights', o[.][2]. Weights are powers of two of scores.
__device__ __forceinline__ void weigh(float (&o)[2][3][4], const Scores& s, const Queries& of, int start) {
    u32 v[4];
    load_transposed(v, of.values + start * 32);
#pragma unroll
    for (int m = 0; m < 2; m++) {
        u32 weights[4];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            weights[2 * k] = halves(power_of_two(s[m][k][0]), power_of_two(s[m][k][1]));
            weights[2 * k + 1] = halves(power_of_two(s[m][k][2]), power_by_polynomial(s[m][k][3]));
        }
        multiply(o[m][0], weights, v[0], v[1]);
        multiply(o[m][1], weights, v[2], v[3]);
        multiply(o[m][2], weights, ONES, ONES);
    }
}

// The sums over all keys that are seen, of scores less the largest.
__device__ __forceinline__ void attend(float (&o)[2][3][4], const Queries& of, const float (&minus)[2][4]) {
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 3; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) o[m][k][e] = 0.f;
    Scores s;
    int start = 0;
    for (; start < of.open; start += KEYS) {
        score(s, of, start, minus);
        weigh(o, s, of, start);
    }
    for (; start < of.end; start += KEYS) {
        score(s, of, start, minus);
        hide(s, of, start);
        weigh(o, s, of, start);
    }
}

// attended [R, rows, D]; logs [R, B, heads, n]: the logarithm to base 2 of the sum that the softmax divides by. Queries, keys and values
// [R, B, heads, n, HEAD] as halves, queries scaled. A warp has 32 queries at a time. Shared memory: 64 bytes for each key, up to a multiple of 16.
extern "C" __global__ void __launch_bounds__(256, 3) attend_rows(float* attended, float* logs, const u16* queries, const u16* keys,
                                                              const u16* values, int n, int causal, u64 rows, u64 tiles) {
    extern __shared__ __align__(128) unsigned char memory[];
    int padded = (n + KEYS - 1) / KEYS * KEYS, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, in = lane % 8;
    u64 at = ((u64)blockIdx.y * gridDim.x + blockIdx.x) * n;
    int b = blockIdx.x / HEADS, h = blockIdx.x % HEADS;
    stage_factor(memory, keys + at * HEAD, n, padded);
    stage_factor(memory + padded * 32, values + at * HEAD, n, padded);
    __syncthreads();
    Queries of;
    of.n = n, of.causal = causal;
    // Lanes' rows of the four matrices: of keys 8 keys by 8 columns each, columns first; of values, keys first.
    of.keys = shared_address(memory) + piece_at(lane / 16 * 8 + in, lane / 8 % 2);
    of.values = shared_address(memory) + padded * 32 + piece_at(lane / 8 % 2 * 8 + in, lane / 16);

    for (of.first = threadIdx.x / 32 * 32; of.first < n; of.first += blockDim.x) {
#pragma unroll
        for (int m = 0; m < 2; m++) load_left(of.q[m], queries + at * HEAD, of.first + 16 * m, n, lane);
        of.end = causal ? min(n, of.first + 32) : n, of.open = (causal ? of.first : n) / KEYS * KEYS;
        // The largest score of those with the nearest keys will do instead of the largest of all, unless a weight is then too large for a half: its
        // sum is infinite.
        float minus[2][4], o[2][3][4];
        find_largest(minus, of, of.first, min(n, of.first + 32));
        attend(o, of, minus);
        if (__ballot_sync(0xffffffffu, !(fmaxf(fmaxf(o[0][2][0], o[0][2][2]), fmaxf(o[1][2][0], o[1][2][2])) < ENDLESS))) {
            find_largest(minus, of, 0, of.end);
            attend(o, of, minus);
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int query = of.first + 16 * m + g + 8 * half;
                if (query >= n) continue;
                float* to = attended + blockIdx.y * tiles * 32 * D;
                float sum = o[m][2][2 * half], by = 1.f / sum;
#pragma unroll
                for (int k = 0; k < 2; k++)
                    *(float2*)(to + place_of((u64)b * n + query, h * HEAD + 8 * k + 2 * t)) = make_float2(o[m][k][2 * half] * by, o[m][k][2 * half + 1] * by);
                if (logs && t == 0) logs[at + query] = log2f(sum) - minus[m][2 * half];
            }
    }
}
