#define QUERIES 16 // that a warp reads at a time
#define QUERY_LINE 24 // floats from one query's gradient to the next's in shared memory, so that eight lie in different banks

__device__ __forceinline__ u32 transposed(u32 m) {
    u32 out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(m));
    return out;
}

// Gradients [R, rows, D] of queries (before they were scaled), keys and values, from that of what was attended to, dattended [R, rows, D], and its
// product with it, products [R, B, heads, n]. A warp has 32 keys at a time and goes over all queries; their gradients add up in shared memory, in a
// fixed order: warps have different windows of queries, and change them together. dattended is scaled by a power of two, so that its largest number
// `largest` [R] is near 16, for the halves' sake. Shared memory: 168 bytes for each query, up to a multiple of 16 times the warps.
extern "C" __global__ void __launch_bounds__(512) attend_rows_backward(float* dqueries, float* dkeys, float* dvalues, const float* dattended,
                                                                       const float* products, const u32* largest, const float* logs,
                                                                       const u16* queries, const u16* keys, const u16* values, int n,
                                                                       int causal, u64 rows, u64 tiles) {
    extern __shared__ __align__(128) unsigned char memory[];
    int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int full = (n + QUERIES - 1) / QUERIES, window = (full + warps - 1) / warps, all = window * warps, padded = all * QUERIES;
    int b = blockIdx.x / HEADS, h = blockIdx.x % HEADS, r = blockIdx.y;
    u64 of = ((u64)r * gridDim.x + blockIdx.x) * n, own = (u64)r * tiles * 32 * D, string = (u64)b * n;
    unsigned char* gradient_memory = memory + padded * 32;
    float2* known = (float2*)(gradient_memory + padded * 32);
    float* sums = (float*)(known + padded);

    int exponent;
    frexpf(__uint_as_float(largest[r]), &exponent);
    float by = ldexpf(1.f, min(4 - exponent, 100)), back = 1.f / by;
    stage_factor(memory, queries + of * HEAD, n, padded);
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        // Beyond the last query all weights are 2^-infinity.
        known[i] = i < n ? make_float2(-logs[of + i], -products[of + i] * by) : make_float2(-ENDLESS, 0.f);
#pragma unroll
        for (int c = 0; c < HEAD; c += 2) {
            float2 two = i < n ? *(const float2*)(dattended + own + place_of(string + i, h * HEAD + c)) : make_float2(0.f, 0.f);
            *(u32*)(gradient_memory + piece_at(i, c / 8) + c % 8 * 2) = halves(two.x * by, two.y * by);
        }
    }
    for (int k = threadIdx.x; k < padded * QUERY_LINE; k += blockDim.x) sums[k] = 0.f;
    __syncthreads();

    int in = lane % 8, plain_row = lane / 16 * 8 + in, plain_piece = lane / 8 % 2, turned_row = lane / 8 % 2 * 8 + in, turned_piece = lane / 16;
    u32 query_base = shared_address(memory), gradient_base = shared_address(gradient_memory);
    int rounds = (n + 32 * warps - 1) / (32 * warps);
    for (int round = 0; round < rounds; round++) {
        int first = (round * warps + warp) * 32; // beyond n where there are no keys left
        u32 k[2][4], v[2][4], turned[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            load_left(k[m], keys + of * HEAD, first + 16 * m, n, lane);
            load_left(v[m], values + of * HEAD, first + 16 * m, n, lane);
#pragma unroll
            for (int e = 0; e < 4; e++) turned[m][e] = transposed(k[m][e]);
        }
        float dk[2][2][4] = {}, dv[2][2][4] = {};
        for (int step = 0, until = 0, tile = warp * window; step < all; step++, tile++) {
            if (step == until) {
                __syncthreads();
                until += window;
            }
            tile = tile == all ? 0 : tile;
            int start = tile * QUERIES;
            if (first >= n || start >= n || (causal && start + QUERIES <= first)) continue;
            u32 q[4], dout[4];
            load_matrices(q, query_base + piece_at(start + plain_row, plain_piece));
            load_matrices(dout, gradient_base + piece_at(start + plain_row, plain_piece));
            // Scores less the logarithm of their sum, and the gradients of weights less what the softmax takes from all.
            float s[2][2][4], ds[2][2][4];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float4 of_two = *(const float4*)(known + start + 8 * j + 2 * t); // of the queries 2 t and 2 t + 1
                float logs_of_two[4] = {of_two.x, of_two.z, of_two.x, of_two.z}, products_of_two[4] = {of_two.y, of_two.w, of_two.y, of_two.w};
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    multiply_onto(s[m][j], k[m], q[2 * j], q[2 * j + 1], logs_of_two);
                    multiply_onto(ds[m][j], v[m], dout[2 * j], dout[2 * j + 1], products_of_two);
                }
            }
            if (first + 32 > n || (causal && start < first + 32)) {
#pragma unroll
                for (int m = 0; m < 2; m++)
#pragma unroll
                    for (int j = 0; j < 2; j++)
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            int key = first + 16 * m + g + e / 2 * 8, query = start + 8 * j + 2 * t + e % 2;
                            if (key >= n || (causal && key > query)) s[m][j][e] = -ENDLESS;
                        }
            }
            u32 weights[2][4], gradients[2][4];
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
                for (int m = 0; m < 2; m++) {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        s[m][j][e] = power_of_two(s[m][j][e]);
                        ds[m][j][e] *= s[m][j][e];
                    }
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        weights[m][2 * j + half] = halves(s[m][j][2 * half], s[m][j][2 * half + 1]);
                        gradients[m][2 * j + half] = halves(ds[m][j][2 * half], ds[m][j][2 * half + 1]);
                    }
                }
            u32 q_turned[4], dout_turned[4];
            load_transposed(q_turned, query_base + piece_at(start + turned_row, turned_piece));
            load_transposed(dout_turned, gradient_base + piece_at(start + turned_row, turned_piece));
            float dq[2][4] = {};
#pragma unroll
            for (int m = 0; m < 2; m++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    multiply(dv[m][j], weights[m], dout_turned[2 * j], dout_turned[2 * j + 1]);
                    multiply(dk[m][j], gradients[m], q_turned[2 * j], q_turned[2 * j + 1]);
                }
                // By queries: a half of keys and a half of queries have changed places.
                u32 by_query[4] = {transposed(gradients[m][0]), transposed(gradients[m][2]), transposed(gradients[m][1]),
                                   transposed(gradients[m][3])};
                multiply(dq[0], by_query, turned[m][0], turned[m][1]);
                multiply(dq[1], by_query, turned[m][2], turned[m][3]);
            }
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    float2* to = (float2*)(sums + (start + g + 8 * half) * QUERY_LINE + 8 * j + 2 * t);
                    float2 sum = *to;
                    *to = make_float2(sum.x + dq[j][2 * half], sum.y + dq[j][2 * half + 1]);
                }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
                for (int e = 0; e < 4; e += 2) {
                    int key = first + 16 * m + g + e / 2 * 8;
                    if (key >= n) continue;
                    u64 at = own + place_of(string + key, h * HEAD + 8 * j + 2 * t);
                    float log2 = back * 0.6931471805599453f; // queries are scaled by log2(e) / 4
                    *(float2*)(dkeys + at) = make_float2(dk[m][j][e] * log2, dk[m][j][e + 1] * log2);
                    *(float2*)(dvalues + at) = make_float2(dv[m][j][e] * back, dv[m][j][e + 1] * back);
                }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
#pragma unroll
        for (int c = 0; c < HEAD; c += 2) {
            float2 sum = *(const float2*)(sums + i * QUERY_LINE + c);
            *(float2*)(dqueries + own + place_of(string + i, h * HEAD + c)) = make_float2(sum.x * back * 0.25f, sum.y * back * 0.25f);
        }
}
