#define KEYS 32 // that a warp reads at a time

// attended [R, rows, D]; logs [R, B, heads, n]: the logarithm to base 2 of the sum that the softmax divides by. Queries, keys and values
// [R, B, heads, n, HEAD] as halves, queries scaled. A warp has 32 queries at a time. Shared memory: 64 bytes for each key, up to a multiple of 32.
extern "C" __global__ void __launch_bounds__(256) attend_rows(float* attended, float* logs, const u16* queries, const u16* keys,
                                                              const u16* values, int n, int causal, u64 rows, u64 tiles) {
    extern __shared__ __align__(128) unsigned char memory[];
    int padded = (n + KEYS - 1) / KEYS * KEYS, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    u64 of = ((u64)blockIdx.y * gridDim.x + blockIdx.x) * n;
    int b = blockIdx.x / HEADS, h = blockIdx.x % HEADS;
    unsigned char* value_memory = memory + padded * 32;
    stage_factor(memory, keys + of * HEAD, n, padded);
    stage_factor(value_memory, values + of * HEAD, n, padded);
    __syncthreads();
    // Lanes' rows of the four matrices: of keys 8 keys by 8 columns each, columns first; of values, keys first.
    int in = lane % 8, key_row = lane / 16 * 8 + in, key_piece = lane / 8 % 2, value_row = lane / 8 % 2 * 8 + in, value_piece = lane / 16;
    u32 key_base = shared_address(memory), value_base = shared_address(value_memory);

    for (int first = threadIdx.x / 32 * 32; first < n; first += blockDim.x) {
        u32 q[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++) load_left(q[m], queries + of * HEAD, first + 16 * m, n, lane);
        float sums[2][2] = {}, most[2][2], o[2][2][4] = {};
#pragma unroll
        for (int m = 0; m < 2; m++) most[m][0] = most[m][1] = -ENDLESS;
        int last = causal ? min(n, first + 32) : n;
        for (int start = 0; start < last; start += KEYS) {
            float s[2][4][4] = {};
#pragma unroll
            for (int pair = 0; pair < 2; pair++) {
                u32 k[4];
                load_matrices(k, key_base + piece_at(start + 16 * pair + key_row, key_piece));
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    multiply(s[m][2 * pair], q[m], k[0], k[1]);
                    multiply(s[m][2 * pair + 1], q[m], k[2], k[3]);
                }
            }
            if (start + KEYS > n || (causal && start + KEYS > first)) {
#pragma unroll
                for (int m = 0; m < 2; m++)
#pragma unroll
                    for (int k = 0; k < 4; k++)
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            int key = start + 8 * k + 2 * t + e % 2, query = first + 16 * m + g + e / 2 * 8;
                            if (key >= n || (causal && key > query)) s[m][k][e] = -ENDLESS;
                        }
            }
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    float now = most[m][half];
#pragma unroll
                    for (int k = 0; k < 4; k++) now = fmaxf(now, fmaxf(s[m][k][2 * half], s[m][k][2 * half + 1]));
                    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
                    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
                    float by = power_of_two(most[m][half] - now);
                    most[m][half] = now;
                    float sum = 0.f;
#pragma unroll
                    for (int k = 0; k < 4; k++)
#pragma unroll
                        for (int e = 2 * half; e < 2 * half + 2; e++) s[m][k][e] = power_of_two(s[m][k][e] - now), sum += s[m][k][e];
                    sums[m][half] = sums[m][half] * by + sum;
#pragma unroll
                    for (int k = 0; k < 2; k++) o[m][k][2 * half] *= by, o[m][k][2 * half + 1] *= by;
                }
#pragma unroll
            for (int pair = 0; pair < 2; pair++) {
                u32 v[4];
                load_transposed(v, value_base + piece_at(start + 16 * pair + value_row, value_piece));
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    float(&low)[4] = s[m][2 * pair], (&high)[4] = s[m][2 * pair + 1];
                    u32 weights[4] = {halves(low[0], low[1]), halves(low[2], low[3]), halves(high[0], high[1]), halves(high[2], high[3])};
                    multiply(o[m][0], weights, v[0], v[1]);
                    multiply(o[m][1], weights, v[2], v[3]);
                }
            }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float sum = sums[m][half];
                sum += __shfl_xor_sync(0xffffffffu, sum, 1);
                sum += __shfl_xor_sync(0xffffffffu, sum, 2);
                int query = first + 16 * m + g + 8 * half;
                if (query >= n) continue;
                float* to = attended + blockIdx.y * tiles * 32 * D;
                float by = 1.f / sum;
#pragma unroll
                for (int k = 0; k < 2; k++)
                    *(float2*)(to + place_of((u64)b * n + query, h * HEAD + 8 * k + 2 * t)) = make_float2(o[m][k][2 * half] * by, o[m][k][2 * half + 1] * by);
                if (logs && t == 0) logs[of + query] = most[m][half] + log2f(sum);
            }
    }
}
