#define KEYS 32 // that a warp reads at a time
#define ONES 0x3c003c00u // two halves

// 2^x by additions and multiplications, since the units that make powers of two are few; off by at most 7.5e-5 of it, a half's rounding by 4.9e-4.
__device__ __forceinline__ float power_by_polynomial(float x) {
    x = fminf(fmaxf(x, -126.f), 127.f);
    float whole = x + 12582912.f, rest = x - (whole - 12582912.f); // the sum's last bit counts ones
    float power = fmaf(fmaf(fmaf(0.05517167f, rest, 0.24261113f), rest, 0.69326099f), rest, 0.99992807f);
    return __uint_as_float(__float_as_uint(power) + (__float_as_uint(whole) << 23));
}

// A warp's 32 queries, from `first` on, and where its keys and values are.
struct Queries {
    u32 q[2][4];
    int first, n, causal;
    u32 keys, values; // where the lane begins to read in shared memory
};

// Their scores with 32 keys onto `sums`; minus infinity where there is no key, or none to be seen.
__device__ __forceinline__ void score(float (&s)[2][4][4], const Queries& of, int start, const float (&sums)[2][4]) {
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        u32 k[4];
        load_matrices(k, of.keys + (start + 16 * pair) * 32);
#pragma unroll
        for (int m = 0; m < 2; m++) {
            multiply_onto(s[m][2 * pair], of.q[m], k[0], k[1], sums[m]);
            multiply_onto(s[m][2 * pair + 1], of.q[m], k[2], k[3], sums[m]);
        }
    }
    if (start + KEYS <= (of.causal ? of.first : of.n)) return;
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int key = start + 8 * k + 2 * (lane % 4) + e % 2, query = of.first + 16 * m + lane / 4 + e / 2 * 8;
                if (key >= of.n || (of.causal && key > query)) s[m][k][e] = -ENDLESS;
            }
}

// Minus the largest score of each query with the keys start .. end - 1: of rows g and g + 8 of 16, twice each.
__device__ __forceinline__ void find_largest(float (&minus)[2][4], const Queries& of, int start, int end) {
    const float none[2][4] = {};
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int e = 0; e < 4; e++) minus[m][e] = ENDLESS;
    for (; start < end; start += KEYS) {
        float s[2][4][4];
        score(s, of, start, none);
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int e = 0; e < 4; e++) minus[m][e] = fminf(minus[m][e], -s[m][k][e]);
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

// The values' sums by weights, o[.][0] and o[.][1], and the weights', o[.][2]; weights are 2^(score + minus).
__device__ __forceinline__ void weigh(float (&o)[2][3][4], const Queries& of, int end, const float (&minus)[2][4]) {
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 3; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) o[m][k][e] = 0.f;
    for (int start = 0; start < end; start += KEYS) {
        float s[2][4][4];
        score(s, of, start, minus);
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int e = 0; e < 4; e++) s[m][k][e] = e == 3 ? power_by_polynomial(s[m][k][e]) : power_of_two(s[m][k][e]);
#pragma unroll
        for (int pair = 0; pair < 2; pair++) {
            u32 v[4];
            load_transposed(v, of.values + (start + 16 * pair) * 32);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                float(&low)[4] = s[m][2 * pair], (&high)[4] = s[m][2 * pair + 1];
                u32 weights[4] = {halves(low[0], low[1]), halves(low[2], low[3]), halves(high[0], high[1]), halves(high[2], high[3])};
                multiply(o[m][0], weights, v[0], v[1]);
                multiply(o[m][1], weights, v[2], v[3]);
                multiply(o[m][2], weights, ONES, ONES);
            }
        }
    }
}

// attended [R, rows, D]; logs [R, B, heads, n]: the logarithm to base 2 of the sum that the softmax divides by. Queries, keys and values
// [R, B, heads, n, HEAD] as halves, queries scaled. A warp has 32 queries at a time. Shared memory: 64 bytes for each key, up to a multiple of 32.
extern "C" __global__ void __launch_bounds__(256) attend_rows(float* attended, float* logs, const u16* queries, const u16* keys,
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
        int end = causal ? min(n, of.first + 32) : n;
        // The largest score of those with the nearest keys will do instead of the largest of all, unless a weight is then too large for a half: its
        // sum is infinite.
        float minus[2][4], o[2][3][4];
        find_largest(minus, of, of.first, min(n, of.first + KEYS));
        weigh(o, of, end, minus);
        if (__ballot_sync(0xffffffffu, !(fmaxf(fmaxf(o[0][2][0], o[0][2][2]), fmaxf(o[1][2][0], o[1][2][2])) < ENDLESS))) {
            find_largest(minus, of, 0, end);
            weigh(o, of, end, minus);
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
