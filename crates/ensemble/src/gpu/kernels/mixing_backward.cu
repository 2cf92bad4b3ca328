// Layer 1's attention backwards in one kernel, for D = 128, two heads and n < 32, on Hopper's tensor cores: from the gradient of what it adds to
// those of scores and values and the sums by token, with no weight and no weight's gradient stored.
//
// A block has all strings of one position i. Of 128 strings at a time, both factors of the values' gradient lie in shared memory: the gradient
// [128 strings, D] and the weights [128 strings, 2 heads x 64]; column 2 j + x of a head is the token of bit x at position j. The last position,
// j = 31, is no string's: in the first head its columns hold which bit the string has at i, so that the sums by token come along.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#define PANEL (2 * 128 * 64)          // bytes of 128 rows of 64 halves, as place_right lays them out
#define TILE_PART (2 * PANEL)         // bytes of 128 rows of 128 halves
#define TILE_BYTES (PARTS * TILE_PART)

// dweights [64 strings, 64] of one head: the gradient times the values.
__device__ __forceinline__ void weight_gradients(float (*c)[4], u32 gradient, u32 values) {
#pragma unroll
    for (int k = 0; k < 8; k++)
#pragma unroll
        for (int part = 0; part < PARTS; part++)
#pragma unroll
            for (int left = 0; left < PARTS - part; left++) {
                u32 at = k / 4 * PANEL + k % 4 * 32;
                multiply_rows(c, gradient + left * TILE_PART + at, values + part * TILE_PART + at);
            }
}

// dS [R, 2, 2n, 2n], tokens [R, 2n, D]: complete. parts [R, n, 2 * 64, D]: of the values' gradient, what position i adds. From before
// [R, B * n, D], scores S and exponents T, the values' image (rows: columns of both heads) with its powers [R, 2], and masks [sets, B].
extern "C" __global__ void __launch_bounds__(256, 1)
    mixing_backward(float* dS, float* tokens, float* parts, const float* before, const float* S, const float* T, const unsigned short* images,
                    u64 stride, const float* powers, const u32* masks, int B, int n, int sets) {
    extern __shared__ __align__(1024) u8 memory[];
    __shared__ float largest[8];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, team = warp / 4, i = blockIdx.x, r = blockIdx.y;
    u8 *gradients = memory, *weights = gradients + TILE_BYTES;
    unsigned short* values = (unsigned short*)(weights + TILE_BYTES);
    Entry* table = (Entry*)(values + PARTS * D * D);
    const float* scores = S + (u64)r * HEADS * 4 * n * n;
    load_images(values, images + r * stride, PARTS * D * D);
    load_table(table, T + (u64)r * HEADS * 4 * n * n, n);
    float inverse_v = powers[2 * r + 1];
    const u32* strings = masks + (u64)(r % sets) * B;
    const float* rows = before + ((u64)r * B * n + i) * D + lane * 4;
    u32 gradients_at = shared_address(gradients), weights_at = shared_address(weights);
    u32 values_at = shared_address(values);
    wait_for_images();

    // Gradients are multiplied by a power of two that suits the largest so far; when a larger one comes, sums are adapted.
    float scale = 0x1p100f, inverse = 0x1p-100f, dV[16][4] = {};
    // Of g = p (dp - sum p dp): its sum over strings, over those with bit 1 at j, at i, and at both.
    float all[2][8] = {}, at_j[2][8] = {}, at_i[2][8] = {}, at_both[2][8] = {};
    for (int begin = 0; begin < B; begin += 128) {
        float v[16][4], most = 0.f;
        int next = begin + 128 + warp * 16;
        if (next + 16 <= B) ask_for_rows(rows - lane * 4 + (u64)next * n * D, (u64)n * D, lane);
#pragma unroll
        for (int k = 0; k < 16; k++) {
            int b = begin + warp * 16 + k;
            float4 four = b < B ? *(const float4*)(rows + (u64)b * n * D) : make_float4(0.f, 0.f, 0.f, 0.f);
            v[k][0] = four.x, v[k][1] = four.y, v[k][2] = four.z, v[k][3] = four.w;
        }
#pragma unroll
        for (int k = 0; k < 16; k++) most = fmaxf(most, fmaxf(fmaxf(fabsf(v[k][0]), fabsf(v[k][1])), fmaxf(fabsf(v[k][2]), fabsf(v[k][3]))));
        most = max_over_warp(most);
        if (lane == 0) largest[warp] = most;
        __syncthreads(); // the last tile's products are done, too
#pragma unroll
        for (int w = 0; w < 8; w++) most = fmaxf(most, largest[w]);
        float up, down;
        power_for(most, SMALL_GRADIENT, &up, &down);
        if (up < scale) {
            float change = up * inverse;
            scale = up, inverse = down;
#pragma unroll
            for (int t = 0; t < 16; t++)
#pragma unroll
                for (int k = 0; k < 4; k++) dV[t][k] *= change;
        }
        // A warp's 16 rows, each by all lanes.
#pragma unroll
        for (int k = 0; k < 16; k++) {
            int row = warp * 16 + k;
            u8* place = gradients + 2 * place_right(row, lane * 4);
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                u32 low = halves(v[k][0] * scale, v[k][1] * scale), high = halves(v[k][2] * scale, v[k][3] * scale);
                *(uint2*)(place + part * TILE_PART) = make_uint2(low, high);
                if (part + 1 < PARTS) {
                    v[k][0] -= from_half((unsigned short)low) * inverse, v[k][1] -= from_half((unsigned short)(low >> 16)) * inverse;
                    v[k][2] -= from_half((unsigned short)high) * inverse, v[k][3] -= from_half((unsigned short)(high >> 16)) * inverse;
                }
            }
        }

        u32 mask[2], token[2];
        float p[2][HEADS][8];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            mask[half] = strings[min(begin + warp * 16 + lane / 4 + half * 8, B - 1)];
            token[half] = 2 * i + (mask[half] >> i & 1);
        }
        weights_of_rows(p, table, scores, token, mask, n, lane);
#pragma unroll
        for (int head = 0; head < HEADS; head++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    int row = warp * 16 + lane / 4 + half * 8, j = 4 * k + lane % 4;
                    bool by_token = head == 0 && j == 31;
                    u32 bit = mask[half] >> (by_token ? i : j) & 1, one[PARTS][4];
                    put_weight(one, 0, by_token ? 1.f : p[half][head][k], bit);
#pragma unroll
                    for (int part = 0; part < PARTS; part++)
                        *(u32*)(weights + part * TILE_PART + 2 * place_right(row, head * 64 + 8 * k + lane % 4 * 2)) = one[part][0];
                }
        show_to_products();
        __syncthreads();

        float dp[8][4] = {};
        u32 own = gradients_at + team * 64 * 128; // this warpgroup's strings
        begin_product<8>(dp);
        settle<16>(dV);
        weight_gradients(dp, own, values_at);
        end_of_products();
        // This warpgroup's head, over all strings.
#pragma unroll
        for (int k = 0; k < 8; k++)
#pragma unroll
            for (int part = 0; part < PARTS; part++)
#pragma unroll
                for (int left = 0; left < PARTS - part; left++)
                    multiply_columns(dV, weights_at + left * TILE_PART + team * PANEL + k * 16 * 128, gradients_at + part * TILE_PART + k * 16 * 128, PANEL);
        end_of_products();
        wait_for_products<1>();
        settle<8>(dp);
#pragma unroll
        for (int head = 0; head < HEADS; head++) {
            if (head == 1) {
                end_product(dV);
#pragma unroll
                for (int t = 0; t < 8; t++)
#pragma unroll
                    for (int k = 0; k < 4; k++) dp[t][k] = 0.f;
                begin_product<8>(dp);
                weight_gradients(dp, own, values_at + 64 * 128);
                end_product<8>(dp);
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                bool bit_i = mask[half] >> i & 1;
                float dot = 0.f;
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    bool bit = mask[half] >> 4 * k + lane % 4 & 1;
                    dp[k][half * 2] = bit ? dp[k][half * 2 + 1] : dp[k][half * 2];
                    dot += p[half][head][k] * dp[k][half * 2];
                }
                dot = sum_over_quad(dot);
                float factor = inverse * inverse_v;
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    bool bit = mask[half] >> 4 * k + lane % 4 & 1;
                    float g = p[half][head][k] * (dp[k][half * 2] - dot) * factor, there = bit ? g : 0.f;
                    all[head][k] += g, at_j[head][k] += there;
                    if (bit_i) at_i[head][k] += g, at_both[head][k] += there;
                }
            }
        }
    }

    float undo = inverse / FACTOR;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int column = warp % 4 * 16 + lane / 4 + half * 8;
        float* out = nullptr;
        if (column < 2 * n)
            out = parts + (((u64)r * n + i) * 128 + team * 64 + column) * D;
        else if (team == 0 && column >= 62)
            out = tokens + ((u64)r * 2 * n + 2 * i + column - 62) * D;
        if (out)
#pragma unroll
            for (int t = 0; t < 16; t++) *(float2*)(out + t * 8 + lane % 4 * 2) = make_float2(dV[t][half * 2] * undo, dV[t][half * 2 + 1] * undo);
    }

    // The lanes of a warp that hold the same positions, then the warps in order.
    __syncthreads();
    float* sums = (float*)memory; // [8 warps, heads, 32 positions, 4]
#pragma unroll
    for (int head = 0; head < HEADS; head++)
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float four[4] = {all[head][k], at_j[head][k], at_i[head][k], at_both[head][k]};
#pragma unroll
            for (int q = 0; q < 4; q++) {
#pragma unroll
                for (int o = 4; o < 32; o *= 2) four[q] += __shfl_xor_sync(FULL, four[q], o);
                if (lane < 4) sums[((warp * HEADS + head) * 32 + 4 * k + lane) * 4 + q] = four[q];
            }
        }
    __syncthreads();
    for (int k = threadIdx.x; k < HEADS * n; k += 256) {
        int head = k / n, j = k % n;
        float four[4] = {};
        for (int w = 0; w < 8; w++)
#pragma unroll
            for (int q = 0; q < 4; q++) four[q] += sums[((w * HEADS + head) * 32 + j) * 4 + q];
        float* line = dS + (((u64)r * HEADS + head) * 2 * n + 2 * i) * 2 * n + 2 * j;
        line[0] = four[0] - four[1] - four[2] + four[3], line[1] = four[1] - four[3];
        line[2 * n] = four[2] - four[3], line[2 * n + 1] = four[3];
    }
}

// The values' gradient [R, 2 * 2n, D]: the sum of the parts of mixing_backward over positions, in order.
extern "C" __global__ void gather_values(float* dV, const float* parts, int n) {
    int line = blockIdx.x, r = blockIdx.y, column = line / (2 * n) * 64 + line % (2 * n);
    float sum = 0.f;
#pragma unroll 8
    for (int i = 0; i < n; i++) sum += parts[(((u64)r * n + i) * 128 + column) * D + threadIdx.x];
    dV[((u64)r * HEADS * 2 * n + line) * D + threadIdx.x] = sum;
}

#endif
