// The last layer at the last position where nothing is kept, for D = FF = 128 and n <= 32, in TF32: three kernels on what first_layer_compact
// leaves, xhat as halves (compact_store). Queries and keys become u = scale * Wk^T (Wq y + b), attention reads xhat once, and everything above
// it is one kernel. y = scale * xhat + shift of the layer below; scale and shift are folded into Wq and Wv (`fold`).

#define COMPACT_WARPS 8

// A lane's columns of its two rows as left factors, from an array of halves of which every `stride`-th row is read. Rows beyond the last are the last.
__device__ __forceinline__ void compact_load(u32 (*a)[1][4], const unsigned short* in, u64 stride, u32 first, u32 rows, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 row = min(first + lane / 4 + half * 8, rows - 1);
        const uint4* own = (const uint4*)(in + row * stride * D) + lane % 4;
#pragma unroll
        for (int t = 0; t < 16; t += 4) {
            uint4 four = own[t];
            a[t / 2][0][half] = four.x, a[t / 2][0][2 + half] = four.y, a[t / 2 + 1][0][half] = four.z, a[t / 2 + 1][0][2 + half] = four.w;
        }
    }
}

// u [R, B, HEADS, D], columns as compact_store has them, times the scale of the layer below, from xhat [R, B * n, D] at the last position.
// Images of the folded Wq and of Wk^T, with powers [2, R, 2]; bias and what no query exceeds [R, D].
extern "C" __global__ void __launch_bounds__(COMPACT_WARPS * 32, 1)
    compact_queries(float* u, const unsigned short* xhat, const unsigned short* images, u64 stride, const float* powers, const float* bias,
                    const float* bounds, const float* params, u64 P, u64 scale, float score_scale, u32 B, int n) {
    extern __shared__ __align__(1024) u8 memory[];
    __shared__ float vectors[2 * D], room;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    unsigned short *queries = (unsigned short*)memory, *keys = queries + D * D;
    load_images(queries, images + r * stride, 2 * D * D);
    const float *power_q = powers + 2 * r, *power_k = power_q + 2 * gridDim.y;
    float up, down;
    power_for(largest_of_block(bounds + (u64)r * D, &room), SMALL_WEIGHT, &up, &down);
    float inverse = power_q[1] * up, factor = score_scale * down * power_k[1];
    for (int k = threadIdx.x; k < D; k += COMPACT_WARPS * 32) {
        vectors[k] = bias[(u64)r * D + k] * up;
        vectors[D + k] = params[r * P + scale + k] * factor;
    }
    wait_for_images();
    u32 queries_at = shared_address(queries), keys_at = shared_address(keys);
    for (u32 begin = blockIdx.x * COMPACT_WARPS * 16 + warp * 16; begin - warp * 16 < B; begin += gridDim.x * COMPACT_WARPS * 16) {
        u32 a[8][1][4], left[8][1][4];
        float c[16][4] = {};
        compact_load(a, xhat + ((u64)r * B * n + n - 1) * D, n, begin, B, lane);
        begin_product(c);
#pragma unroll
        for (int t = 0; t < 8; t++) product_step(c, a[t], queries_at, 128, t * 16, lane);
        end_product(c);
#pragma unroll
        for (int t = 0; t < 16; t++) {
            float2 own = *(const float2*)(vectors + t * 8 + lane % 4 * 2);
#pragma unroll
            for (int half = 0; half < 2; half++)
                put_left(left[t / 2], t % 2 * 2 + half, c[t][half * 2] * inverse + own.x, c[t][half * 2 + 1] * inverse + own.y);
        }
#pragma unroll
        for (int head = 0; head < HEADS; head++) {
            float v[16][4] = {};
            begin_product(v);
#pragma unroll
            for (int t = head * (8 / HEADS); t < (head + 1) * (8 / HEADS); t++) product_step(v, left[t], keys_at, 128, t * 16, lane);
            end_product(v);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                u32 row = begin + lane / 4 + half * 8;
                float4* out = (float4*)(u + (((u64)r * B + row) * HEADS + head) * D) + lane % 4 * 2;
#pragma unroll
                for (int t = 0; t < 16; t += 2) {
                    float2 one = *(const float2*)(vectors + D + t * 8 + lane % 4 * 2), two = *(const float2*)(vectors + D + t * 8 + 8 + lane % 4 * 2);
                    if (row < B)
                        out[t / 4 * 8 + t / 2 % 2] = make_float4(v[t][half * 2] * one.x, v[t][half * 2 + 1] * one.y,
                                                                 v[t + 1][half * 2] * two.x, v[t + 1][half * 2 + 1] * two.y);
                }
            }
        }
    }
}

// Two halves as floats.
__device__ __forceinline__ float2 both_floats(u32 both) {
    return make_float2(from_half((unsigned short)both), from_half((unsigned short)(both >> 16)));
}

// mean [R, B, HEADS, D], halves: sum_j p_j xhat_j with p the softmax of u . xhat_j. One warp for each string: eight lanes hold 16 columns each
// of a position, four such groups every fourth position.
extern "C" __global__ void __launch_bounds__(THREADS)
    compact_attention(unsigned short* mean, const float* u, const unsigned short* xhat, int B, int n) {
    int b = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 8, part = lane % 8;
    if (b >= B) return;
    u64 string = (u64)blockIdx.y * B + b;
    const uint4* own = (const uint4*)(xhat + string * n * D) + part * 2;
    uint4 x[8][2];
#pragma unroll
    for (int k = 0; k < 8; k++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            x[k][half] = 4 * k + group < n ? own[(4 * k + group) * (D / 8) + half] : make_uint4(0, 0, 0, 0);
    float score[HEADS][8];
    {
        float query[HEADS][16];
#pragma unroll
        for (int head = 0; head < HEADS; head++)
#pragma unroll
            for (int k = 0; k < 16; k += 4) {
                float4 four = *(const float4*)(u + (string * HEADS + head) * D + part * 16 + k);
                query[head][k] = four.x, query[head][k + 1] = four.y, query[head][k + 2] = four.z, query[head][k + 3] = four.w;
            }
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const u32* words = (const u32*)x[k];
#pragma unroll
            for (int head = 0; head < HEADS; head++) score[head][k] = 0.f;
#pragma unroll
            for (int w = 0; w < 8; w++) {
                float2 pair = both_floats(words[w]);
#pragma unroll
                for (int head = 0; head < HEADS; head++) score[head][k] += query[head][2 * w] * pair.x + query[head][2 * w + 1] * pair.y;
            }
        }
    }
    float mix[HEADS * 16] = {};
#pragma unroll
    for (int head = 0; head < HEADS; head++) {
        float most = -3.4e38f, sum = 0.f;
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int o = 1; o < 8; o *= 2) score[head][k] += __shfl_xor_sync(FULL, score[head][k], o);
            most = 4 * k + group < n ? fmaxf(most, score[head][k]) : most;
        }
        most = fmaxf(most, __shfl_xor_sync(FULL, most, 8));
        most = fmaxf(most, __shfl_xor_sync(FULL, most, 16));
#pragma unroll
        for (int k = 0; k < 8; k++) {
            score[head][k] = 4 * k + group < n ? __expf(score[head][k] - most) : 0.f;
            sum += score[head][k];
        }
        sum += __shfl_xor_sync(FULL, sum, 8);
        sum += __shfl_xor_sync(FULL, sum, 16);
        sum = 1.f / sum;
#pragma unroll
        for (int k = 0; k < 8; k++) score[head][k] *= sum;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const u32* words = (const u32*)x[k];
#pragma unroll
        for (int w = 0; w < 8; w++) {
            float2 pair = both_floats(words[w]);
#pragma unroll
            for (int head = 0; head < HEADS; head++) {
                mix[head * 16 + 2 * w] += score[head][k] * pair.x;
                mix[head * 16 + 2 * w + 1] += score[head][k] * pair.y;
            }
        }
    }
    // Sums over the groups: each gives half of its numbers away and adds the other half up, twice.
    bool upper = group & 2, odd = group & 1;
#pragma unroll
    for (int k = 0; k < HEADS * 8; k++) {
        float other = __shfl_xor_sync(FULL, upper ? mix[k] : mix[HEADS * 8 + k], 16);
        mix[k] = (upper ? mix[HEADS * 8 + k] : mix[k]) + other;
    }
#pragma unroll
    for (int k = 0; k < HEADS * 4; k++) {
        float other = __shfl_xor_sync(FULL, odd ? mix[k] : mix[HEADS * 4 + k], 8);
        mix[k] = (odd ? mix[HEADS * 4 + k] : mix[k]) + other;
    }
    // Of the numbers [HEADS, 16] a lane has those from group * HEADS * 4 on.
    int from = group * HEADS * 4;
    u32* out = (u32*)(mean + (string * HEADS + from / 16) * D + part * 16 + from % 16);
#pragma unroll
    for (int k = 0; k < HEADS * 4; k += 4) *(uint2*)(out + k / 2) = make_uint2(halves(mix[k], mix[k + 1]), halves(mix[k + 2], mix[k + 3]));
}

// out [R, B] from mean and xhat: values, output projection, feed-forward block, head. Images of the folded Wv, of Wo, the folded W1 and W2 with
// powers [4, R, 2]. bias and bounds [2, R, D]: of values, of hidden numbers. Variances of both norms as ever.
extern "C" __global__ void __launch_bounds__(COMPACT_WARPS * 32, 1)
    compact_top(float* out, float* var1, float* var2, const unsigned short* mean, const unsigned short* xhat, const unsigned short* images,
                u64 stride, const float* powers, const float* bias_v, const float* bias_1, const float* bounds, const float* params, u64 P,
                u64 scale_below, u64 shift_below, u64 out_bias, u64 bias2, u64 scale1, u64 shift1, u64 head, u64 head_bias, u64 scale2,
                u64 shift2, u32 B, int n) {
    extern __shared__ __align__(1024) u8 memory[];
    __shared__ __align__(16) float vectors[BLOCK_FLOATS], residual[2 * D], bias[D], weights[D], room, room_2, constant;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    unsigned short* image = (unsigned short*)memory;
    load_images(image, images + r * stride, 4 * D * D);
    const float *own = params + r * P, *power = powers + 2 * r, *bound = bounds + (u64)r * D;
    u64 next = 2 * gridDim.y;
    u32 at = shared_address(image);
    Block block = block_of<NOTHING>(vectors, &room, at + 4 * D * D, at + 6 * D * D, power + 2 * next, power + 3 * next, bias_1 + (u64)r * FF,
                                  bound + (u64)gridDim.y * D, own + scale1, own + shift1, own + bias2);
    float up, down;
    power_for(largest_of_block(bound, &room_2), SMALL_WEIGHT, &up, &down);
    float inverse_v = power[1] * up, power_o = up * power[next], inverse_o = down * power[next + 1];
    for (int k = threadIdx.x; k < D; k += COMPACT_WARPS * 32) {
        bias[k] = bias_v[(u64)r * D + k] * up;
        residual[k / 2 * 4 + k % 2] = own[scale_below + k] * power_o;
        residual[k / 2 * 4 + k % 2 + 2] = (own[shift_below + k] + own[out_bias + k]) * power_o;
        weights[k] = own[head + k] * own[scale2 + k];
    }
    if (warp == 0) {
        float sum = 0.f;
#pragma unroll
        for (int k = lane; k < D; k += 32) sum += own[head + k] * own[shift2 + k];
        sum = sum_over_warp(sum);
        if (lane == 0) constant = sum + own[head_bias];
    }
    wait_for_images();
    for (u32 begin = blockIdx.x * COMPACT_WARPS * 16 + warp * 16; begin - warp * 16 < B; begin += gridDim.x * COMPACT_WARPS * 16) {
        u32 left[8][1][4];
        float x[16][4], var[2];
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            u32 a[8][1][4];
            float v[16 / HEADS][4] = {};
            compact_load(a, mean + ((u64)r * B * HEADS + h) * D, HEADS, begin, B, lane);
            begin_product<16 / HEADS>(v);
#pragma unroll
            for (int t = 0; t < 8; t++) product_step<16 / HEADS>(v, a[t], at, 128, t * 16, lane, h * (D / HEADS));
            end_product<16 / HEADS>(v);
#pragma unroll
            for (int t = 0; t < 16 / HEADS; t++) {
                int to = h * (16 / HEADS) + t;
                float2 offset = *(const float2*)(bias + to * 8 + lane % 4 * 2);
#pragma unroll
                for (int half = 0; half < 2; half++)
                    put_left(left[to / 2], to % 2 * 2 + half, v[t][half * 2] * inverse_v + offset.x, v[t][half * 2 + 1] * inverse_v + offset.y);
            }
        }
        {
            u32 a[8][1][4];
            compact_load(a, xhat + ((u64)r * B * n + n - 1) * D, n, begin, B, lane);
#pragma unroll
            for (int t = 0; t < 16; t++) {
                float4 pair = *(const float4*)(residual + (t * 4 + lane % 4) * 4);
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    float2 both = both_floats(a[t / 2][0][t % 2 * 2 + half]);
                    x[t][half * 2] = both.x * pair.x + pair.z, x[t][half * 2 + 1] = both.y * pair.y + pair.w;
                }
            }
        }
        begin_product(x);
#pragma unroll
        for (int t = 0; t < 8; t++) product_step(x, left[t], at + 2 * D * D, 128, t * 16, lane);
        end_product(x);
        u64 first = (u64)r * B + begin + lane / 4;
        bool real[2] = {begin + lane / 4 < B, begin + lane / 4 + 8 < B};
        normalise_rows(x, power_o, inverse_o, var);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (lane % 4 == 0 && real[half]) var1[first + half * 8] = var[half];
        feed_forward<NOTHING>(x, block, nullptr, begin, B, lane);
        normalise_rows(x, block.power, block.inverse, var);
        float sum[2] = {};
#pragma unroll
        for (int t = 0; t < 16; t++) {
            float2 pair = *(const float2*)(weights + t * 8 + lane % 4 * 2);
#pragma unroll
            for (int half = 0; half < 2; half++) sum[half] += x[t][half * 2] * pair.x + x[t][half * 2 + 1] * pair.y;
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            sum[half] = sum_over_quad(sum[half]);
            if (lane % 4 == 0 && real[half]) var2[first + half * 8] = var[half], out[first + half * 8] = sum[half] + constant;
        }
    }
}
