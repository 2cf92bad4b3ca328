// The feed-forward block backwards where layer 1's first norm and hidden numbers are kept as halves (KEEPS_HALVES): feed_forward_backward, which
// leaves halves for the weights' gradients, too. Every lane asks for its numbers of the next tile as soon as it has read those of this one.

// A warp's 16 rows, each lane's numbers in the order in which it reads them: after as store_pair writes it, hidden and norm1 as compact_store does.
struct Tile {
    float2 after[32][32];
    uint4 hidden[8][32], norm1[8][32];
};

// Asks for rows of halves; rows beyond the last are those of the last. `end_of_copies` ends each such call.
__device__ __forceinline__ void ask_for_halves(uint4 (*to)[32], const unsigned short* in, u32 first, u32 rows, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint4* own = (const uint4*)(in + (u64)min(first + lane / 4 + half * 8, rows - 1) * D) + lane % 4;
        u32 at = shared_address(to[half * 4] + lane);
#pragma unroll
        for (int t = 0; t < 4; t++) copy_16_bytes(at + t * 512, own + t * 4);
    }
}

// The same of floats.
__device__ __forceinline__ void ask_for_floats(float2 (*to)[32], const float* in, u32 first, u32 rows, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float* own = in + (u64)min(first + lane / 4 + half * 8, rows - 1) * D + lane % 4 * 2;
        u32 at = shared_address(to[half * 16] + lane);
#pragma unroll
        for (int t = 0; t < 16; t++) copy_8_bytes(at + t * 256, own + t * 8);
    }
}

__device__ __forceinline__ void take_floats(float (*v)[4], const float2 (*from)[32], int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int t = 0; t < 16; t++) {
            float2 pair = from[half * 16 + t][lane];
            v[t][half * 2] = pair.x, v[t][half * 2 + 1] = pair.y;
        }
}

__device__ __forceinline__ void take_halves(float (*v)[4], const uint4 (*from)[32], int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int t = 0; t < 16; t += 4) {
            uint4 four = from[half * 4 + t / 4][lane];
            u32 words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                v[t + k][half * 2] = from_half((unsigned short)words[k]);
                v[t + k][half * 2 + 1] = from_half((unsigned short)(words[k] >> 16));
            }
        }
}

// As feed_forward_backward, from hidden and norm1 as halves. dhidden and scaled [R, rows, 128], halves as compact_store has them: the gradient of
// hidden numbers and `after`, times one power of two for all rows of a replica, so that sums over rows can be taken of their products. kept [4, R],
// in: what hidden is multiplied by, and the largest of after; out: what undoes the powers in products of scaled with hidden and of dhidden with norm1.
extern "C" __global__ void __launch_bounds__(256, 1)
    feed_forward_backward_halves(float* before, unsigned short* dhidden, unsigned short* scaled, float* parts, float* kept, const float* after,
                                 const unsigned short* hidden, const unsigned short* norm1, const float* var1, const unsigned short* images,
                                 u64 stride, const float* powers, const float* params, u64 P, u64 scale1, u32 rows) {
    extern __shared__ __align__(1024) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y, R = gridDim.y;
    unsigned short *second = (unsigned short*)memory, *first = second + FF * D;
    float *scale = (float*)(first + D * FF), *sums = scale + D; // sums [8 warps, 2, 128]
    Tile& tile = ((Tile*)(sums + 16 * D))[warp];
    load_images(second, images + r * stride, 2 * FF * D);
    u32 begin = blockIdx.x * TILE + warp * 16;
    u64 all = (u64)r * rows * D;
    ask_for_halves(tile.hidden, hidden + all, begin, rows, lane), end_of_copies();
    ask_for_floats(tile.after, after + all, begin, rows, lane), end_of_copies();
    ask_for_halves(tile.norm1, norm1 + all, begin, rows, lane), end_of_copies();
    for (int k = threadIdx.x; k < D; k += 256) scale[k] = params[r * P + scale1 + k];
    float scale_2 = powers[2 * r], inverse_2 = powers[2 * r + 1], scale_1 = powers[2 * (R + r)], inverse_1 = powers[2 * (R + r) + 1];

    // The largest of after becomes less than 2^15. A number of dhidden is a sum of 128 products, whose second factor is less than 2^11 / scale_2.
    float power_a, undo_a;
    power_for(kept[R + r], SMALL_GRADIENT, &power_a, &undo_a);
    power_a *= 0x1p4f, undo_a *= 0x1p-4f;
    float power_h = power_a * (scale_2 * 0x1p-18f);
    if (blockIdx.x == 0 && threadIdx.x == 0) kept[2 * R + r] = undo_a / kept[r], kept[3 * R + r] = undo_a * (inverse_2 * 0x1p18f);
    wait_for_images();
    u32 second_at = shared_address(second), first_at = shared_address(first);
    float bias[16][2] = {}, along[16][2] = {};

    for (; begin - warp * 16 < rows; begin += gridDim.x * TILE) {
        bool real[2] = {begin + lane / 4 < rows, begin + lane / 4 + 8 < rows};
        u32 next = begin + gridDim.x * TILE;
        bool more = next - warp * 16 < rows;
        float g[16][4] = {}, least[2], up[2], down[2];
        wait_for_copies_but_one(); // norm1
        {
            float v[16][4], largest[2];
            take_floats(v, tile.after, lane);
            compact_store(scaled + all, v, begin, rows, lane, power_a);
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
            take_halves(h, tile.hidden, lane);
            if (more) ask_for_halves(tile.hidden, hidden + all, next, rows, lane);
            end_of_copies();
#pragma unroll
            for (int t = 0; t < 16; t++)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    g[t][k] = h[t][k] > 0.f && real[k / 2] ? g[t][k] * (down[k / 2] * inverse_2) : 0.f;
                    bias[t][k % 2] += g[t][k];
                }
            compact_store(dhidden + all, g, begin, rows, lane, power_h);
            // What the direct path adds must not exceed what an f32 can hold, however small these are beside it.
            largest_of_rows(g, largest);
#pragma unroll
            for (int half = 0; half < 2; half++) power_for(fmaxf(largest[half], least[half]), SMALL_GRADIENT, &up[half], &down[half]);
        }

        // The direct path is what the second product is added to.
        float x[16][4];
        wait_for_copies_but_one(); // the next tile's hidden
        take_floats(x, tile.after, lane);
        {
            float xhat[16][4];
            take_halves(xhat, tile.norm1, lane);
#pragma unroll
            for (int t = 0; t < 16; t++) {
                int c = t * 8 + lane % 4 * 2;
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    along[t][k % 2] += real[k / 2] ? xhat[t][k] * x[t][k] : 0.f;
                    x[t][k] *= up[k / 2] * scale_1 * scale[c + k % 2];
                }
            }
        }
        if (more) ask_for_floats(tile.after, after + all, next, rows, lane);
        end_of_copies();
        product(x, g, up, first_at, lane);

        // Through the first norm.
        float undo[2] = {down[0] * inverse_1, down[1] * inverse_1};
        take_halves(g, tile.norm1, lane);
        if (more) ask_for_halves(tile.norm1, norm1 + all, next, rows, lane);
        end_of_copies();
        normalise_rows_backward(x, g, undo, var1 + (u64)r * rows, begin, rows, lane);
        store_pair(before + all, x, begin, rows, lane);
    }
    store_sums(parts, bias, along, sums, r, warp, lane);
}

// out [R, 128, 128] at out + r * stride: the sum of parts [R, count, 128, 128], products over rows of halves whose columns come as compact_store has
// them, added in order; times factor [R], and in the usual order.
extern "C" __global__ void add_compact_parts(float* __restrict__ out, u64 stride, const float* __restrict__ parts, int count,
                                             const float* __restrict__ factor) {
    int k = blockIdx.x * THREADS + threadIdx.x, r = blockIdx.y;
    if (k >= D * D) return;
    float sum = 0.f;
    u64 from = compact_column(k / D) * D + compact_column(k % D);
#pragma unroll 4
    for (int part = 0; part < count; part++) sum += parts[((u64)r * count + part) * (D * D) + from];
    out[r * stride + k] = sum * factor[r];
}
