// The whole first layer of one tile of rows in registers, for D = FF = 128 and n <= 32, on tensor cores (tensor.cu).
//
// A block keeps the matrices of one replica in shared memory and walks through tiles of 128 rows (b, i), each warp with 16 of them.

// Both rows of a lane, in place: s -> xhat.
__device__ __forceinline__ void normalise_pair(float (*v)[4], float* var) {
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
        float mean = 0.f, square = 0.f;
#pragma unroll
        for (int t = 0; t < 16; t++) mean += v[t][half] + v[t][half + 1];
        mean = sum_over_quad(mean) / D;
#pragma unroll
        for (int t = 0; t < 16; t++) {
            v[t][half] -= mean, v[t][half + 1] -= mean;
            square += v[t][half] * v[t][half] + v[t][half + 1] * v[t][half + 1];
        }
        square = sum_over_quad(square) / D;
        float factor = 1.f / sqrtf(square + EPS);
#pragma unroll
        for (int t = 0; t < 16; t++) v[t][half] *= factor, v[t][half + 1] *= factor;
        var[half / 2] = square;
    }
}

// The part of a row's entries that a lane holds of a table [HEADS, 2n, 2n] whose line for the row's token is `line`: those at the positions
// j = 4 k + lane % 4 by the bits there, 0 beyond the last.
__device__ __forceinline__ void entries_of_row(float (*e)[8], const float* line, u32 mask, int n, int lane) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int j = 4 * k + lane % 4, column = 2 * j + (mask >> j & 1);
#pragma unroll
        for (int head = 0; head < HEADS; head++) e[head][k] = j < n ? line[head * 4 * n * n + column] : 0.f;
    }
}

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

// A row's scores in e -> exp(score - its own largest).
__device__ __forceinline__ void exponents_of_row(float (*e)[8], int n, int lane) {
#pragma unroll
    for (int head = 0; head < HEADS; head++) {
        float most = -3.4e38f;
#pragma unroll
        for (int k = 0; k < 8; k++) most = 4 * k + lane % 4 < n ? fmaxf(most, e[head][k]) : most;
        most = max_over_quad(most);
#pragma unroll
        for (int k = 0; k < 8; k++) e[head][k] = 4 * k + lane % 4 < n ? expf(e[head][k] - most) : 0.f;
    }
}

// From scores S, their exponents T and the images of values, folded W1 and W2 (`prepare`) to norm2 [R, B * m, D]. Values have 2n columns of
// each head, rounded up to 16; `pitch` is all of them rounded up to 64. powers [3, R, 2]. masks [sets, B]: strings as words. Where mix is
// given, what the way back needs is stored too: mix, norm1, hidden.
extern "C" __global__ void __launch_bounds__(256, 1)
    first_layer(float* mix, float* norm1, float* var1, float* hidden, float* norm2, float* var2, const float* S, const float* T,
                const unsigned short* images, u64 stride, const float* powers, const float* E, const float* bias1, const float* params, u64 P,
                u64 out_bias, u64 bias2, u64 scale1, u64 shift1, const u32* masks, int B, int n, int m, int sets, int pitch) {
    extern __shared__ __align__(1024) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y, mixed = HEADS * 2 * n;
    unsigned short *values = (unsigned short*)memory, *first = values + PARTS * D * pitch, *second = first + PARTS * FF * D;
    float* vectors = (float*)(second + PARTS * D * FF); // out bias, bias1, scale1, shift1 + bias2
    float* table = vectors + 4 * D;                     // [HEADS, 2n, 2n]
    const float *own = params + r * P, *scores = S + (u64)r * HEADS * 4 * n * n;
    load_images(values, images + r * stride, PARTS * D * (pitch + D + FF));
    for (int k = threadIdx.x; k < D; k += 256) {
        vectors[k] = own[out_bias + k], vectors[D + k] = bias1[(u64)r * FF + k];
        vectors[2 * D + k] = own[scale1 + k], vectors[3 * D + k] = own[shift1 + k] + own[bias2 + k];
    }
#pragma unroll 8
    for (int k = threadIdx.x; k < HEADS * 4 * n * n; k += 256) table[k] = T[(u64)r * HEADS * 4 * n * n + k];
    const float *power_v = powers + 2 * r, *power_1 = power_v + 2 * gridDim.y, *power_2 = power_1 + 2 * gridDim.y;
    float scale_v = power_v[0], inverse_v = power_v[1], scale_1 = power_1[0], inverse_1 = power_1[1];
    float scale_2 = power_2[0], inverse_2 = power_2[1];
    wait_for_images();

    u32 values_at = (u32)__cvta_generic_to_shared(values), first_at = (u32)__cvta_generic_to_shared(first);
    u32 second_at = (u32)__cvta_generic_to_shared(second), rows = B * m;
    const u32* strings = masks + (u64)(r % sets) * B;

    for (u32 begin = blockIdx.x * TILE + warp * 16; begin - warp * 16 < rows; begin += gridDim.x * TILE) {
        u32 row[2], mask[2], line[2];
        float x1[16][4], var[2], e[2][HEADS][8], factor[2][HEADS];
        bool enough = true;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            row[half] = begin + lane / 4 + half * 8;
            u32 real = min(row[half], rows - 1), i = n - m + real % m;
            mask[half] = strings[real / m];
            u32 t = 2 * i + (mask[half] >> i & 1);
            line[half] = t * 2 * n;
            // The residual is what the product is added to.
            const float* token = E + ((u64)r * 2 * n + t) * D;
#pragma unroll
            for (int k = 0; k < 16; k++) {
                int c = k * 8 + lane % 4 * 2;
                float2 embedded = *(const float2*)(token + c);
                x1[k][half * 2] = (embedded.x + vectors[c]) * (FACTOR * scale_v);
                x1[k][half * 2 + 1] = (embedded.y + vectors[c + 1]) * (FACTOR * scale_v);
            }
            entries_of_row(e[half], table + line[half], mask[half], n, lane);
            sum_of_row(factor[half], e[half]);
#pragma unroll
            for (int head = 0; head < HEADS; head++) enough = enough && factor[half][head] > LEAST_SUM;
        }
        if (!__all_sync(FULL, enough))
#pragma unroll
            for (int half = 0; half < 2; half++) {
                entries_of_row(e[half], scores + line[half], mask[half], n, lane);
                exponents_of_row(e[half], n, lane);
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
                    bool one = mask[half] >> j & 1;
                    float p = e[half][head][place] * factor[half][head];
                    float2 both = make_float2(one ? 0.f : p, one ? p : 0.f);
                    if (mix && j < n && row[half] < rows)
                        *(float2*)(mix + ((u64)r * rows + row[half]) * mixed + head * 2 * n + 2 * j) = both;
                    put_left(a[head][k], q, both.x * FACTOR, both.y * FACTOR);
                }
        begin_product();
#pragma unroll
        for (int head = 0; head < HEADS; head++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (k * 8 < n) product_step(x1, a[head][k], values_at, pitch, head * ((2 * n + 15) / 16 * 16) + k * 16, lane);
        end_product();

        // First norm.
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) x1[t][k] *= inverse_v / FACTOR;
        normalise_pair(x1, var);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (lane % 4 == 0 && row[half] < rows) var1[(u64)r * rows + row[half]] = var[half];
        if (mix) store_pair(norm1 + (u64)r * rows * D, x1, begin, rows, lane);

        // Feed-forward block: hidden layer. No number of a normalised row exceeds sqrt(128).
        float h[16][4], up[2] = {FACTOR, FACTOR}, down[2];
#pragma unroll
        for (int t = 0; t < 16; t++) {
            int c = t * 8 + lane % 4 * 2;
            h[t][0] = h[t][2] = vectors[D + c] * (FACTOR * scale_1), h[t][1] = h[t][3] = vectors[D + c + 1] * (FACTOR * scale_1);
        }
        product(h, x1, up, first_at, lane);
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) h[t][k] = fmaxf(h[t][k] * (inverse_1 / FACTOR), 0.f);
        if (mix) store_pair(hidden + (u64)r * rows * FF, h, begin, rows, lane);

        // Residual into the sum the second product is added to; second norm.
        largest_of_rows(h, var);
#pragma unroll
        for (int half = 0; half < 2; half++) power_for(var[half], SMALL_WEIGHT, &up[half], &down[half]);
#pragma unroll
        for (int t = 0; t < 16; t++) {
            int c = t * 8 + lane % 4 * 2;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int at = c + k % 2;
                x1[t][k] = (x1[t][k] * vectors[2 * D + at] + vectors[3 * D + at]) * (up[k / 2] * scale_2);
            }
        }
        product(x1, h, up, second_at, lane);
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) x1[t][k] *= down[k / 2] * inverse_2;
        normalise_pair(x1, var);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (lane % 4 == 0 && row[half] < rows) var2[(u64)r * rows + row[half]] = var[half];
        store_pair(norm2 + (u64)r * rows * D, x1, begin, rows, lane);
    }
}
