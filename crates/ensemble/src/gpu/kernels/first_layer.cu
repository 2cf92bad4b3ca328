// The whole first layer of one tile of rows in registers, for D = FF = 128 and n <= 32, on tensor cores (tensor.cu, block.cu).
//
// A block keeps the matrices of one replica in shared memory and walks through tiles of rows (b, i), each warp with 16 of them.

#define FIRST_WARPS (PARTS == 1 ? 12 : 8) // more, where registers suffice

// x += attention weights times values, whose columns are 16 STEPS for each head.
template <int STEPS>
__device__ __forceinline__ void mix_values(float (*x)[4], u32 (*a)[4][PARTS][4], u32 values, int pitch, int lane) {
    begin_product(x);
#pragma unroll
    for (int head = 0; head < HEADS; head++)
#pragma unroll
        for (int k = 0; k < STEPS; k++) product_step(x, a[head][k], values, pitch, (head * STEPS + k) * 16, lane);
    end_product(x);
}

// From scores S, their exponents T and the images of values, folded W1 and W2 (`prepare`) to norm2 [R, B * m, D]. Values have 32
// columns of each head, or 64 where n > 16; `pitch` is all of them rounded up to 64. powers [3, R, 2]. base: `residuals`. masks [sets, B]: strings as
// words. KEPT: what the way back needs is stored too: mix where it is given, norm1 and hidden, as floats or as halves (compact_store), hidden
// numbers then times a power of two, which kept [R] gets; the largest gradient, in the next R, is set to 0. COMPACT: norm2 as halves.
template <Kept KEPT, bool COMPACT>
__device__ __forceinline__ void first_layer_of(float* mix, void* norm1, float* var1, void* hidden, void* norm2, float* var2, float* kept,
                                               const float* S, const float* T, const unsigned short* images, u64 stride,
                                               const float* powers, const float* base, const float* bias1, const float* bounds,
                                               const float* params, u64 P, u64 bias2, u64 scale1, u64 shift1, const u32* masks, int B, int n,
                                               int m, int sets, int pitch) {
    extern __shared__ __align__(1024) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y, mixed = HEADS * 2 * n;
    unsigned short *values = (unsigned short*)memory, *first = values + PARTS * D * pitch, *second = first + PARTS * FF * D;
    float* vectors = (float*)(second + PARTS * D * FF);
    Entry* table = (Entry*)(vectors + BLOCK_FLOATS + 4); // [2n, LINE]
    const float *own = params + r * P, *scores = S + (u64)r * HEADS * 4 * n * n;
    load_images(values, images + r * stride, PARTS * D * (pitch + D + FF));
    load_table(table, T + (u64)r * HEADS * 4 * n * n, n);
    const float *power_v = powers + 2 * r, *power_1 = power_v + 2 * gridDim.y, *power_2 = power_1 + 2 * gridDim.y;
    u32 values_at = shared_address(values);
    Block block = block_of<KEPT>(vectors, vectors + BLOCK_FLOATS, shared_address(first), shared_address(second), power_1,
                           power_2, bias1 + (u64)r * FF, bounds + (u64)r * FF, own + scale1, own + shift1, own + bias2);
    float power = FACTOR * power_v[0], inverse = power_v[1] / FACTOR;
    if (KEPT == HALVES && blockIdx.x == 0 && threadIdx.x == 0) kept[r] = block.up, kept[gridDim.y + r] = 0.f;
    wait_for_images();

    u32 rows = B * m, all = r * rows, step = gridDim.x * FIRST_WARPS * 16;
    const u32* strings = masks + (u64)(r % sets) * B;
    const float* bases = base + (u64)r * 2 * n * D + lane % 4 * 2;
    u32 begin = blockIdx.x * FIRST_WARPS * 16 + warp * 16, next[2];
#pragma unroll
    for (int half = 0; half < 2; half++) next[half] = strings[min(begin + lane / 4 + half * 8, rows - 1) / m];

    // A warp beyond the last row goes on with those of its warpgroup, since they multiply together.
    for (; begin - warp * 16 < rows; begin += step) {
        u32 row[2], mask[2], token[2];
        float x[16][4], p[2][HEADS][8], var[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            row[half] = begin + lane / 4 + half * 8;
            u32 i = n - m + min(row[half], rows - 1) % m;
            mask[half] = next[half];
            token[half] = 2 * i + (mask[half] >> i & 1);
            // The next strings are on their way while these are computed.
            next[half] = strings[min(row[half] + step, rows - 1) / m];
            const float* residual = bases + token[half] * D;
#pragma unroll
            for (int t = 0; t < 16; t++) {
                float2 pair = *(const float2*)(residual + t * 8);
                x[t][half * 2] = pair.x, x[t][half * 2 + 1] = pair.y;
            }
        }
        weights_of_rows(p, table, scores, token, mask, n, lane);

        // Attention weights times values: of two columns, those of a position's bits 0 and 1, one is 0.
        u32 a[HEADS][4][PARTS][4];
#pragma unroll
        for (int head = 0; head < HEADS; head++)
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int q = 0; q < 4; q++) {
                    int half = q % 2, place = 2 * k + q / 2, j = 4 * place + lane % 4;
                    u32 bit = mask[half] >> j & 1;
                    float own = p[half][head][place];
                    if (KEPT != NOTHING && mix && j < n && row[half] < rows)
                        *(float2*)(mix + (u64)(all + row[half]) * mixed + head * 2 * n + 2 * j) = make_float2(bit ? 0.f : own, bit ? own : 0.f);
                    put_weight(a[head][k], q, own, bit);
                }
        if (n <= 16)
            mix_values<2>(x, a, values_at, pitch, lane);
        else
            mix_values<4>(x, a, values_at, pitch, lane);

        normalise_centred(x, power, inverse, var);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (lane % 4 == 0 && row[half] < rows) var1[all + row[half]] = var[half];
        if (KEPT == FLOATS) store_pair((float*)norm1, x, all + begin, all + rows, lane);
        if (KEPT == HALVES) compact_store((unsigned short*)norm1, x, all + begin, all + rows, lane);
        feed_forward<KEPT>(x, block, hidden, all + begin, all + rows, lane);
        normalise_rows(x, block.power, block.inverse, var);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (lane % 4 == 0 && row[half] < rows) var2[all + row[half]] = var[half];
        if (COMPACT)
            compact_store((unsigned short*)norm2, x, all + begin, all + rows, lane);
        else
            store_pair((float*)norm2, x, all + begin, all + rows, lane);
    }
}

#define FIRST_LAYER(name, stored, compact)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(FIRST_WARPS * 32, 1)                                                                        \
        name(float* mix, void* norm1, float* var1, void* hidden, void* norm2, float* var2, float* kept, const float* S, const float* T,      \
             const unsigned short* images, u64 stride, const float* powers, const float* base, const float* bias1, const float* bounds,      \
             const float* params, u64 P, u64 bias2, u64 scale1, u64 shift1, const u32* masks, int B, int n, int m, int sets, int pitch) {    \
        first_layer_of<stored, compact>(mix, norm1, var1, hidden, norm2, var2, kept, S, T, images, stride, powers, base, bias1, bounds,      \
                                        params, P, bias2, scale1, shift1, masks, B, n, m, sets, pitch);                                      \
    }
