// The feed-forward block backwards, from the gradient of the second norm's input to that of the first norm's, in registers; made as
// first_layer is.

// before, dhidden [R, rows, 128] from after, hidden, norm1, with the images of the transposed W2 and folded W1 and their powers [2, R, 2].
// parts [2, R, blocks, 128]: sums over the rows of a block of dhidden, and of after * norm1.
extern "C" __global__ void __launch_bounds__(256, 1)
    feed_forward_backward(float* before, float* dhidden, float* parts, const float* after, const float* hidden, const float* norm1,
                          const float* var1, const unsigned short* images, u64 stride, const float* powers, const float* params, u64 P,
                          u64 scale1, u32 rows) {
    extern __shared__ __align__(1024) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    unsigned short *second = (unsigned short*)memory, *first = second + PARTS * FF * D;
    float *scale = (float*)(first + PARTS * D * FF), *sums = scale + D; // sums [8 warps, 2, 128]
    load_images(second, images + r * stride, 2 * PARTS * FF * D);
    for (int k = threadIdx.x; k < D; k += 256) scale[k] = params[r * P + scale1 + k];
    float inverse_2 = powers[2 * r + 1], scale_1 = powers[2 * (gridDim.y + r)], inverse_1 = powers[2 * (gridDim.y + r) + 1];
    wait_for_images();
    u32 second_at = shared_address(second), first_at = shared_address(first);
    u64 all = (u64)r * rows * D;
    float bias[16][2] = {}, along[16][2] = {};

    for (u32 begin = blockIdx.x * TILE + warp * 16; begin - warp * 16 < rows; begin += gridDim.x * TILE) {
        bool real[2] = {begin + lane / 4 < rows, begin + lane / 4 + 8 < rows};
        float g[16][4] = {}, least[2], up[2], down[2];
        {
            float v[16][4], largest[2];
            load_pair(v, after + all, begin, rows, lane);
            largest_of_rows(v, largest);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                power_for(largest[half], SMALL_GRADIENT, &up[half], &down[half]);
                least[half] = largest[half] * 0x1p-24f;
            }
            product(g, v, up, second_at, lane);
        }

        // Through the ReLU.
        {
            float h[16][4], largest[2];
            load_pair(h, hidden + all, begin, rows, lane);
#pragma unroll
            for (int t = 0; t < 16; t++)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    g[t][k] = h[t][k] > 0.f && real[k / 2] ? g[t][k] * (down[k / 2] * inverse_2) : 0.f;
                    bias[t][k % 2] += g[t][k];
                }
            store_pair(dhidden + all, g, begin, rows, lane);
            // What the direct path adds must not exceed what an f32 can hold, however small these are beside it.
            largest_of_rows(g, largest);
#pragma unroll
            for (int half = 0; half < 2; half++) power_for(fmaxf(largest[half], least[half]), SMALL_GRADIENT, &up[half], &down[half]);
        }

        // The direct path is what the second product is added to.
        float x[16][4];
        load_pair(x, after + all, begin, rows, lane);
#pragma unroll
        for (int t = 0; t < 16; t++) {
            int c = t * 8 + lane % 4 * 2;
#pragma unroll
            for (int k = 0; k < 4; k++) x[t][k] *= up[k / 2] * scale_1 * scale[c + k % 2];
        }
        product(x, g, up, first_at, lane);

        // Through the first norm.
        float undo[2] = {down[0] * inverse_1, down[1] * inverse_1};
        load_pair(g, norm1 + all, begin, rows, lane);
        normalise_rows_backward(x, g, undo, var1 + (u64)r * rows, begin, rows, lane);
        store_pair(before + all, x, begin, rows, lane);
        load_pair(x, after + all, begin, rows, lane);
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) along[t][k % 2] += real[k / 2] ? g[t][k] * x[t][k] : 0.f;
    }

    store_sums(parts, bias, along, sums, r, warp, lane);
}
