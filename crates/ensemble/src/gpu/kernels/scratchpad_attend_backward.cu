#define QUERIES 16 // that a warp reads at a time
#define GROUPS 4 // of 16 keys that a warp has at a time
#define KEYS (16 * GROUPS)

// Gradients [R, rows, D] of queries (before they were scaled), keys and values, from that of what was attended to, dattended [R, rows, D], and its
// product with it, products [R, B, heads, n]. A warp has 64 keys at a time and goes over all queries; their gradients add up in shared memory, in a
// fixed order: warps have different windows of queries, and change them together. dattended is scaled by a power of two, so that its largest number
// `largest` [R] is near 16, for the halves' sake. Shared memory: 144 bytes for each query, up to a multiple of 16.
extern "C" __global__ void __launch_bounds__(256) attend_rows_backward(float* dqueries, float* dkeys, float* dvalues, const float* dattended,
                                                                       const float* products, const u32* largest, const float* logs,
                                                                       const u16* queries, const u16* keys, const u16* values, int n,
                                                                       int causal, u64 rows, u64 tiles) {
    extern __shared__ __align__(128) unsigned char memory[];
    int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, in = lane % 8;
    int all = (n + QUERIES - 1) / QUERIES, padded = all * QUERIES;
    int b = blockIdx.x / HEADS, h = blockIdx.x % HEADS, r = blockIdx.y;
    u64 of = ((u64)r * gridDim.x + blockIdx.x) * n, own = (u64)r * tiles * 32 * D, string = (u64)b * n;
    // Of two queries, what their scores' and their weights' gradients begin with, as a product's sums lie in a lane: each twice.
    unsigned char* gradient_memory = memory + padded * 32;
    float* known = (float*)(gradient_memory + padded * 32); // [padded / 2, 2, 4]
    float* sums = known + padded * 4;                       // [all, 2, 32 lanes, 4], as a product's sums lie

    int exponent;
    frexpf(__uint_as_float(largest[r]), &exponent);
    float by = ldexpf(1.f, min(4 - exponent, 100)), back = 1.f / by;
    stage_factor(memory, queries + of * HEAD, n, padded);
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        // Beyond the last query all weights are 2^-infinity.
        float* to = known + i / 2 * 8 + i % 2;
        to[0] = to[2] = i < n ? -logs[of + i] : -ENDLESS;
        to[4] = to[6] = i < n ? -products[of + i] * by : 0.f;
#pragma unroll
        for (int c = 0; c < HEAD; c += 2) {
            float2 two = i < n ? *(const float2*)(dattended + own + place_of(string + i, h * HEAD + c)) : make_float2(0.f, 0.f);
            *(u32*)(gradient_memory + piece_at(i, c / 8) + c % 8 * 2) = halves(two.x * by, two.y * by);
        }
    }
    for (int k = threadIdx.x; k < padded * HEAD; k += blockDim.x) sums[k] = 0.f;

    u32 plain = shared_address(memory) + piece_at(lane / 16 * 8 + in, lane / 8 % 2);
    u32 turned = shared_address(memory) + piece_at(lane / 8 % 2 * 8 + in, lane / 16);
    for (int round = 0; round * warps * KEYS < n; round++) {
        int first = (round * warps + warp) * KEYS; // beyond n where there are no keys left
        u32 k[GROUPS][4], v[GROUPS][4], k_turned[GROUPS][4];
#pragma unroll
        for (int m = 0; m < GROUPS; m++) {
            load_left(k[m], keys + of * HEAD, first + 16 * m, n, lane);
            load_left(v[m], values + of * HEAD, first + 16 * m, n, lane);
#pragma unroll
            for (int e = 0; e < 4; e++) k_turned[m][e] = transposed(k[m][e]);
        }
        float dk[GROUPS][2][4] = {}, dv[GROUPS][2][4] = {};
        // The queries that any of these keys is seen by.
        int lowest = causal ? round * warps * KEYS / QUERIES : 0, window = (all - lowest + warps - 1) / warps;
        for (int turn = 0; turn < warps; turn++) {
            __syncthreads();
            int begin = lowest + (warp + turn) % warps * window, end = first < n ? min(begin + window, all) : 0;
            if (causal) begin = max(begin, first / QUERIES);
            for (int tile = begin; tile < end; tile++) {
                u32 q[4], dout[4];
                load_matrices(q, plain + tile * QUERIES * 32);
                load_matrices(dout, plain + (padded + tile * QUERIES) * 32);
                // Scores less the logarithm of their sum, and the gradients of weights less what the softmax takes from all.
                float s[GROUPS][2][4], ds[GROUPS][2][4];
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float4 two = *(const float4*)(known + (tile * 8 + 4 * j + t) * 8), other = *(const float4*)(known + (tile * 8 + 4 * j + t) * 8 + 4);
                    float less[4] = {two.x, two.y, two.z, two.w}, taken[4] = {other.x, other.y, other.z, other.w};
#pragma unroll
                    for (int m = 0; m < GROUPS; m++) {
                        multiply_onto(s[m][j], k[m], q[2 * j], q[2 * j + 1], less);
                        multiply_onto(ds[m][j], v[m], dout[2 * j], dout[2 * j + 1], taken);
                    }
                }
                if (first + KEYS > n || (causal && tile * QUERIES < first + KEYS)) {
#pragma unroll
                    for (int m = 0; m < GROUPS; m++)
#pragma unroll
                        for (int j = 0; j < 2; j++)
#pragma unroll
                            for (int e = 0; e < 4; e++) {
                                int key = first + 16 * m + g + e / 2 * 8, query = tile * QUERIES + 8 * j + 2 * t + e % 2;
                                if (key >= n || (causal && key > query)) s[m][j][e] = -ENDLESS;
                            }
                }
                u32 weights[GROUPS][4], gradients[GROUPS][4];
#pragma unroll
                for (int m = 0; m < GROUPS; m++)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
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
                load_transposed(q_turned, turned + tile * QUERIES * 32);
                load_transposed(dout_turned, turned + (padded + tile * QUERIES) * 32);
                float4* sum = (float4*)sums + tile * 64 + lane;
                float4 low = sum[0], high = sum[32];
                float dq[2][4] = {{low.x, low.y, low.z, low.w}, {high.x, high.y, high.z, high.w}};
#pragma unroll
                for (int m = 0; m < GROUPS; m++) {
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        multiply(dv[m][j], weights[m], dout_turned[2 * j], dout_turned[2 * j + 1]);
                        multiply(dk[m][j], gradients[m], q_turned[2 * j], q_turned[2 * j + 1]);
                    }
                    // By queries: a half of keys and a half of queries have changed places.
                    u32 by_query[4] = {transposed(gradients[m][0]), transposed(gradients[m][2]), transposed(gradients[m][1]),
                                       transposed(gradients[m][3])};
                    multiply(dq[0], by_query, k_turned[m][0], k_turned[m][1]);
                    multiply(dq[1], by_query, k_turned[m][2], k_turned[m][3]);
                }
                sum[0] = make_float4(dq[0][0], dq[0][1], dq[0][2], dq[0][3]), sum[32] = make_float4(dq[1][0], dq[1][1], dq[1][2], dq[1][3]);
            }
        }
#pragma unroll
        for (int m = 0; m < GROUPS; m++)
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
            float2 sum = *(const float2*)(sums + ((i / QUERIES * 2 + c / 8) * 32 + i % 8 * 4 + c % 8 / 2) * 4 + i / 8 % 2 * 2);
            *(float2*)(dqueries + own + place_of(string + i, h * HEAD + c)) = make_float2(sum.x * back * 0.25f, sum.y * back * 0.25f);
        }
}
