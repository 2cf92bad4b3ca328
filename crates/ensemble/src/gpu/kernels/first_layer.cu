// The whole first layer of one tile of rows in registers, for D = FF = 128 and n <= 32, on tensor cores (tensor.cu, block.cu).
//
// A block keeps the matrices of one replica in shared memory and walks through tiles of rows (b, i), each warp with 16 of them.

#define FIRST_WARPS (PARTS == 1 ? 12 : 8) // more, where registers suffice

// Of the table of exponents, the entries of a pair of tokens: one for each head. A line has room for 32 positions, and lines begin in
// different banks.
struct __align__(HEADS % 4 == 0 ? 16 : HEADS % 2 == 0 ? 8 : 4) Entry {
    float e[HEADS];
};
#define LINE 68

// Four lanes together: the sums over a row's entries.
__device__ __forceinline__ void sum_of_row(float* sum, float (*e)[8]) {
#pragma unroll
    for (int head = 0; head < HEADS; head++) {
        float total = 0.f;
#pragma unroll
        for (int k = 0; k < 8; k++) total += e[head][k];
        sum[head] = sum_over_quad(total);
    }
}

// A row's exponents from its scores themselves: exp(score - its own largest). `line`: the row's line of the scores [HEADS, 2n, 2n].
__device__ __forceinline__ void exponents_of_row(float (*e)[8], const float* line, u32 mask, int n, int lane) {
#pragma unroll
    for (int head = 0; head < HEADS; head++) {
        float most = -3.4e38f;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            int j = 4 * k + lane % 4;
            e[head][k] = j < n ? line[head * 4 * n * n + 2 * j + (mask >> j & 1)] : -3.4e38f;
            most = fmaxf(most, e[head][k]);
        }
        most = max_over_quad(most);
#pragma unroll
        for (int k = 0; k < 8; k++) e[head][k] = 4 * k + lane % 4 < n ? expf(e[head][k] - most) : 0.f;
    }
}

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
// words. KEEP: what the way back needs is stored too: mix, norm1, hidden. COMPACT: norm2 as halves, as compact_store has them.
template <bool KEEP, bool COMPACT>
__device__ __forceinline__ void first_layer_of(float* mix, float* norm1, float* var1, float* hidden, void* norm2, float* var2, const float* S,
                                               const float* T, const unsigned short* images, u64 stride, const float* powers, const float* base,
                                               const float* bias1, const float* bounds, const float* params, u64 P, u64 bias2, u64 scale1,
                                               u64 shift1, const u32* masks, int B, int n, int m, int sets, int pitch) {
    extern __shared__ __align__(1024) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y, mixed = HEADS * 2 * n;
    unsigned short *values = (unsigned short*)memory, *first = values + PARTS * D * pitch, *second = first + PARTS * FF * D;
    float* vectors = (float*)(second + PARTS * D * FF);
    Entry* table = (Entry*)(vectors + BLOCK_FLOATS + 4); // [2n, LINE]
    const float *own = params + r * P, *scores = S + (u64)r * HEADS * 4 * n * n, *exponents = T + (u64)r * HEADS * 4 * n * n;
    load_images(values, images + r * stride, PARTS * D * (pitch + D + FF));
    for (int k = threadIdx.x; k < 2 * n * 64; k += FIRST_WARPS * 32) {
        int line = k / 64, column = k % 64;
#pragma unroll
        for (int head = 0; head < HEADS; head++)
            table[line * LINE + column].e[head] = column < 2 * n ? exponents[(head * 2 * n + line) * 2 * n + column] : 0.f;
    }
    const float *power_v = powers + 2 * r, *power_1 = power_v + 2 * gridDim.y, *power_2 = power_1 + 2 * gridDim.y;
    u32 values_at = (u32)__cvta_generic_to_shared(values);
    Block block = block_of<KEEP>(vectors, vectors + BLOCK_FLOATS, (u32)__cvta_generic_to_shared(first), (u32)__cvta_generic_to_shared(second), power_1,
                           power_2, bias1 + (u64)r * FF, bounds + (u64)r * FF, own + scale1, own + shift1, own + bias2);
    float power = FACTOR * power_v[0], inverse = power_v[1] / FACTOR;
    wait_for_images();

    u32 rows = B * m, step = gridDim.x * FIRST_WARPS * 16;
    const u32* strings = masks + (u64)(r % sets) * B;
    const float* bases = base + (u64)r * 2 * n * D + lane % 4 * 2;
    u32 begin = blockIdx.x * FIRST_WARPS * 16 + warp * 16, next[2];
#pragma unroll
    for (int half = 0; half < 2; half++) next[half] = strings[min(begin + lane / 4 + half * 8, rows - 1) / m];

    // A warp beyond the last row goes on with those of its warpgroup, since they multiply together.
    for (; begin - warp * 16 < rows; begin += step) {
        u32 row[2], mask[2], line[2];
        float x[16][4], e[2][HEADS][8], factor[2][HEADS], var[2];
        bool enough = true;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            row[half] = begin + lane / 4 + half * 8;
            u32 i = n - m + min(row[half], rows - 1) % m;
            mask[half] = next[half];
            line[half] = 2 * i + (mask[half] >> i & 1);
            // The next strings are on their way while these are computed.
            next[half] = strings[min(row[half] + step, rows - 1) / m];
            const float* residual = bases + line[half] * D;
#pragma unroll
            for (int t = 0; t < 16; t++) {
                float2 pair = *(const float2*)(residual + t * 8);
                x[t][half * 2] = pair.x, x[t][half * 2 + 1] = pair.y;
            }
            const Entry* entries = table + line[half] * LINE + lane % 4 * 2;
            u32 bits = mask[half] >> lane % 4;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                Entry entry = entries[8 * k + (bits >> 4 * k & 1)];
#pragma unroll
                for (int head = 0; head < HEADS; head++) e[half][head][k] = entry.e[head];
            }
            sum_of_row(factor[half], e[half]);
#pragma unroll
            for (int head = 0; head < HEADS; head++) enough = enough && factor[half][head] > LEAST_SUM;
        }
        if (!__all_sync(FULL, enough))
#pragma unroll
            for (int half = 0; half < 2; half++) {
                exponents_of_row(e[half], scores + line[half] * 2 * n, mask[half], n, lane);
                sum_of_row(factor[half], e[half]);
            }
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int head = 0; head < HEADS; head++) factor[half][head] = 1.f / factor[half][head];

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
                    float p = e[half][head][place] * factor[half][head];
                    if (KEEP && j < n && row[half] < rows)
                        *(float2*)(mix + ((u64)r * rows + row[half]) * mixed + head * 2 * n + 2 * j) = make_float2(bit ? 0.f : p, bit ? p : 0.f);
                    p *= FACTOR;
#pragma unroll
                    for (int part = 0; part < PARTS; part++) {
                        u32 one = halves(p, 0.f);
                        a[head][k][part][q] = one << 16 * bit;
                        p -= from_half((unsigned short)one);
                    }
                }
        if (n <= 16)
            mix_values<2>(x, a, values_at, pitch, lane);
        else
            mix_values<4>(x, a, values_at, pitch, lane);

        normalise_centred(x, power, inverse, var);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (lane % 4 == 0 && row[half] < rows) var1[(u64)r * rows + row[half]] = var[half];
        if (KEEP) store_pair(norm1 + (u64)r * rows * D, x, begin, rows, lane);
        feed_forward<KEEP>(x, block, hidden + (u64)r * rows * FF, begin, rows, lane);
        normalise_rows(x, block.power, block.inverse, var);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (lane % 4 == 0 && row[half] < rows) var2[(u64)r * rows + row[half]] = var[half];
        if (COMPACT)
            compact_store((unsigned short*)norm2 + (u64)r * rows * D, x, begin, rows, lane);
        else
            store_pair((float*)norm2 + (u64)r * rows * D, x, begin, rows, lane);
    }
}

#define FIRST_LAYER(name, keep, compact)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(FIRST_WARPS * 32, 1)                                                                        \
        name(float* mix, float* norm1, float* var1, float* hidden, void* norm2, float* var2, const float* S, const float* T,                 \
             const unsigned short* images, u64 stride, const float* powers, const float* base, const float* bias1, const float* bounds,      \
             const float* params, u64 P, u64 bias2, u64 scale1, u64 shift1, const u32* masks, int B, int n, int m, int sets, int pitch) {    \
        first_layer_of<keep, compact>(mix, norm1, var1, hidden, norm2, var2, S, T, images, stride, powers, base, bias1, bounds, params, P,   \
                                      bias2, scale1, shift1, masks, B, n, m, sets, pitch);                                                   \
    }
