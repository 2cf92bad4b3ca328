// The feed-forward block backwards, from the gradient of the second norm's input to that of the first norm's, in registers; made as
// first_layer is. f16 has few exponents, so each row is scaled by a power of two before the products and back after them.

#if D == 128 && FF == 128 && __CUDA_ARCH__ >= 800
// A power of two near 1 / v, and its inverse.
__device__ __forceinline__ void power_near(float v, float* scale, float* inverse) {
    u32 exponent = min(max(__float_as_uint(v) >> 23 & 255u, 40u), 214u);
    *scale = __uint_as_float((254u - exponent) << 23);
    *inverse = __uint_as_float(exponent << 23);
}

// Both rows of a lane from an array [rows, 128]; rows beyond the last are those of the last.
__device__ __forceinline__ void load_pair(float (*v)[4], const float* in, u32 first, u32 rows, int lane) {
    u32 row = first + lane / 4;
    const float *one = in + (u64)min(row, rows - 1) * D + lane % 4 * 2, *two = in + (u64)min(row + 8, rows - 1) * D + lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < 16; t++) {
        float2 a = *(const float2*)(one + t * 8), b = *(const float2*)(two + t * 8);
        v[t][0] = a.x, v[t][1] = a.y, v[t][2] = b.x, v[t][3] = b.y;
    }
}

// before, dhidden [R, rows, 128] from after, hidden, norm1. parts [2, R, blocks, 128]: sums over the rows of a block of dhidden, and
// of after * norm1.
extern "C" __global__ void __launch_bounds__(256, 1)
    feed_forward_backward(float* before, float* dhidden, float* parts, const float* after, const float* hidden, const float* norm1,
                          const float* var1, const float* W, const float* params, u64 P, u64 weight2, u64 scale1, u32 rows) {
    extern __shared__ __align__(16) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    unsigned short *second = (unsigned short*)memory, *first = second + FF * LONG;
    float *scale = (float*)(first + D * LONG), *sums = scale + D; // sums [8 warps, 2, 128]
    const float* own = params + r * P;
#pragma unroll 8
    for (int k = threadIdx.x; k < D * FF; k += 256) {
        int row = k / FF, column = k % FF;
        second[column * LONG + row] = (unsigned short)halves(own[weight2 + k], 0.f);
        first[column * LONG + row] = (unsigned short)halves(W[(u64)r * FF * D + k], 0.f);
    }
    for (int k = threadIdx.x; k < D; k += 256) scale[k] = own[scale1 + k];
    __syncthreads();
    u32 second_at = (u32)__cvta_generic_to_shared(second), first_at = (u32)__cvta_generic_to_shared(first);
    u64 all = (u64)r * rows * D;
    float bias[16][2] = {}, along[16][2] = {};

    for (u32 begin = blockIdx.x * TILE + warp * 16; begin - warp * 16 < rows; begin += gridDim.x * TILE) {
        bool real[2] = {begin + lane / 4 < rows, begin + lane / 4 + 8 < rows};
        u32 packed[16][2];
        float up[2], down[2];
        {
            float v[16][4], largest[2] = {};
            load_pair(v, after + all, begin, rows, lane);
#pragma unroll
            for (int t = 0; t < 16; t++)
#pragma unroll
                for (int k = 0; k < 4; k++) largest[k / 2] = fmaxf(largest[k / 2], fabsf(v[t][k]));
#pragma unroll
            for (int half = 0; half < 2; half++) {
                largest[half] = fmaxf(largest[half], __shfl_xor_sync(0xffffffffu, largest[half], 1));
                largest[half] = fmaxf(largest[half], __shfl_xor_sync(0xffffffffu, largest[half], 2));
                power_near(largest[half], &up[half], &down[half]);
            }
#pragma unroll
            for (int t = 0; t < 16; t++) {
                packed[t][0] = halves(v[t][0] * up[0], v[t][1] * up[0]);
                packed[t][1] = halves(v[t][2] * up[1], v[t][3] * up[1]);
            }
        }
        float g[16][4] = {};
#pragma unroll
        for (int t = 0; t < 16; t += 2) {
            u32 a[4] = {packed[t][0], packed[t][1], packed[t + 1][0], packed[t + 1][1]};
            product_step(g, a, second_at, LONG, t * 8, lane);
        }

        // Through the ReLU.
        {
            float h[16][4];
            load_pair(h, hidden + all, begin, rows, lane);
#pragma unroll
            for (int t = 0; t < 16; t++) {
#pragma unroll
                for (int k = 0; k < 4; k++) g[t][k] = h[t][k] > 0.f && real[k / 2] ? g[t][k] : 0.f;
                packed[t][0] = halves(g[t][0], g[t][1]), packed[t][1] = halves(g[t][2], g[t][3]);
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    g[t][k] *= down[k / 2];
                    bias[t][k % 2] += g[t][k];
                }
            }
            store_pair(dhidden + all, g, begin, rows, lane);
        }

        // The direct path is what the second product is added to.
        load_pair(g, after + all, begin, rows, lane);
#pragma unroll
        for (int t = 0; t < 16; t++) {
            int c = t * 8 + lane % 4 * 2;
#pragma unroll
            for (int k = 0; k < 4; k++) g[t][k] *= up[k / 2] * scale[c + k % 2];
        }
#pragma unroll
        for (int t = 0; t < 16; t += 2) {
            u32 a[4] = {packed[t][0], packed[t][1], packed[t + 1][0], packed[t + 1][1]};
            product_step(g, a, first_at, LONG, t * 8, lane);
        }

        // Through the first norm.
        float x[16][4], mean[2] = {}, dot[2] = {}, factor[2];
        load_pair(x, norm1 + all, begin, rows, lane);
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                g[t][k] *= down[k / 2];
                mean[k / 2] += g[t][k];
                dot[k / 2] += g[t][k] * x[t][k];
            }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            mean[half] = sum_over_quad(mean[half]) / D;
            dot[half] = sum_over_quad(dot[half]) / D;
            factor[half] = 1.f / sqrtf(var1[(u64)r * rows + min(begin + lane / 4 + half * 8, rows - 1)] + EPS);
        }
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) g[t][k] = factor[k / 2] * (g[t][k] - mean[k / 2] - x[t][k] * dot[k / 2]);
        store_pair(before + all, g, begin, rows, lane);
        load_pair(g, after + all, begin, rows, lane);
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) along[t][k % 2] += real[k / 2] ? g[t][k] * x[t][k] : 0.f;
    }

    // The lanes of a warp that hold the same columns, then the warps in order.
#pragma unroll
    for (int t = 0; t < 16; t++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
#pragma unroll
            for (int o = 4; o < 32; o *= 2) {
                bias[t][k] += __shfl_xor_sync(0xffffffffu, bias[t][k], o);
                along[t][k] += __shfl_xor_sync(0xffffffffu, along[t][k], o);
            }
            if (lane < 4) {
                sums[warp * 2 * D + t * 8 + lane * 2 + k] = bias[t][k];
                sums[warp * 2 * D + D + t * 8 + lane * 2 + k] = along[t][k];
            }
        }
    __syncthreads();
    int which = threadIdx.x / D, c = threadIdx.x % D;
    float sum = 0.f;
    for (int w = 0; w < 8; w++) sum += sums[w * 2 * D + which * D + c];
    parts[(((u64)which * gridDim.y + r) * gridDim.x + blockIdx.x) * D + c] = sum;
}
#endif
