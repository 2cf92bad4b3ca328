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

// Attention weights without an exponential for each: a block makes a table of exp(score - the largest of its row of the table of scores),
// and a string's weights are its entries over their sum. Where that sum is below this, the largest is not among the string's scores, its
// entries have lost digits, and the weights are computed from the scores and the string's own largest.
#define LEAST_SUM 0x1p-20f

// Sums over the positions j of a row (b, i), four lanes together: for each head that of the entries at `own`, those of (b, i)'s token; the
// next head's lie 4 n^2 further.
__device__ __forceinline__ void sum_of_row(float* sum, const float* own, u32 mask, int n, int lane) {
#pragma unroll
    for (int head = 0; head < HEADS; head++, own += 4 * n * n) {
        sum[head] = 0.f;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            int j = k * 4 + lane % 4;
            if (j < n) sum[head] += own[j + (mask >> j & 1) * n];
        }
        sum[head] = sum_over_quad(sum[head]);
    }
}

// The same from the scores at `own`, with the largest of a row's own.
__device__ __forceinline__ void softmax_of_row(float* largest, float* sum, const float* own, u32 mask, int n, int lane) {
    for (int head = 0; head < HEADS; head++, own += 4 * n * n) {
        float most = -3.4e38f, total = 0.f;
        for (int j = lane % 4; j < n; j += 4) most = fmaxf(most, own[j + (mask >> j & 1) * n]);
        most = max_over_quad(most);
        for (int j = lane % 4; j < n; j += 4) total += expf(own[j + (mask >> j & 1) * n] - most);
        largest[head] = most;
        sum[head] = sum_over_quad(total);
    }
}

// From scores S and values V [R, HEADS * 2n, D], folded W and b, to norm2 [R, B * m, D]. `columns` is HEADS * 2n rounded up to 16, `pitch`
// to 64. Where mix is given, what the way back needs is stored too: mix, norm1, hidden.
extern "C" __global__ void __launch_bounds__(256, 1)
    first_layer(float* mix, float* norm1, float* var1, float* hidden, float* norm2, float* var2, const float* S, const float* V,
                const float* E, const float* W, const float* bias1, const float* params, u64 P, u64 out_bias, u64 weight2, u64 bias2,
                u64 scale1, u64 shift1, const u8* bits, int B, int n, int m, int sets, int columns, int pitch) {
    extern __shared__ __align__(16) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y, mixed = HEADS * 2 * n;
    unsigned short *values = (unsigned short*)memory, *first = values + PARTS * D * pitch, *second = first + PARTS * FF * D;
    float* vectors = (float*)(second + PARTS * D * FF); // out bias, bias1, scale1, shift1 + bias2
    float* table = vectors + 4 * D;                     // [HEADS, 2n, 2n]
    u32* place = (u32*)(table + HEADS * 4 * n * n);     // of a column of mix: where its entries lie, and its j, x, head
    const float* own = params + r * P;

    // Powers of two for the matrices, and one over them.
    float scale_v, inverse_v, scale_1, inverse_1, scale_2, inverse_2;
    power_for_matrix(V + (u64)r * mixed * D, mixed * D, vectors, &scale_v, &inverse_v);
    power_for_matrix(W + (u64)r * FF * D, FF * D, vectors, &scale_1, &inverse_1);
    power_for_matrix(own + weight2, D * FF, vectors, &scale_2, &inverse_2);
#pragma unroll 8
    for (int k = threadIdx.x; k < D * columns; k += 256) {
        int t = k / D, c = k % D;
        put_right(values, pitch, c, t, t < mixed ? V[((u64)r * mixed + t) * D + c] * scale_v : 0.f);
    }
#pragma unroll 8
    for (int k = threadIdx.x; k < FF * D; k += 256) {
        put_right(first, D, k / D, k % D, W[(u64)r * FF * D + k] * scale_1);
        put_right(second, FF, k / FF, k % FF, own[weight2 + k] * scale_2);
    }
    for (int k = threadIdx.x; k < D; k += 256) {
        vectors[k] = own[out_bias + k], vectors[D + k] = bias1[(u64)r * FF + k];
        vectors[2 * D + k] = own[scale1 + k], vectors[3 * D + k] = own[shift1 + k] + own[bias2 + k];
    }
    const float* scores = S + (u64)r * HEADS * 4 * n * n;
    for (int line = warp; line < HEADS * 2 * n; line += 8) {
        float most = -3.4e38f;
        for (int t = lane; t < 2 * n; t += 32) most = fmaxf(most, scores[line * 2 * n + t]);
        most = max_over_warp(most);
        for (int t = lane; t < 2 * n; t += 32) table[line * 2 * n + t] = expf(scores[line * 2 * n + t] - most);
    }
    for (int k = threadIdx.x; k < columns; k += 256) {
        int head = k / (2 * n), t = k % (2 * n);
        place[k] = (head * 4 * n * n + t) | t % n << 16 | t / n << 21 | head << 22;
    }
    __syncthreads();

    u32 values_at = (u32)__cvta_generic_to_shared(values), first_at = (u32)__cvta_generic_to_shared(first);
    u32 second_at = (u32)__cvta_generic_to_shared(second), rows = B * m;
    const u8* strings = bits + (u64)(r % sets) * B * n;

    for (u32 begin = blockIdx.x * TILE + warp * 16; begin - warp * 16 < rows; begin += gridDim.x * TILE) {
        u32 row[2], mask[2] = {}, line[2], string = begin / m, position = begin % m;
        const float* token[2];
        float largest[2][HEADS] = {}, factor[2][HEADS];
        bool enough = true;
#pragma unroll
        for (int k = 0; k < 16; k++) {
            u32 ones = __ballot_sync(FULL, lane < n && strings[min(string, B - 1) * n + lane]);
            mask[k / 8] = lane / 4 == k % 8 ? ones : mask[k / 8];
            if (++position == m) position = 0, string++;
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            row[half] = begin + lane / 4 + half * 8;
            u32 i = n - m + min(row[half], rows - 1) % m, t = (mask[half] >> i & 1) * n + i;
            line[half] = t * 2 * n;
            token[half] = E + ((u64)r * 2 * n + t) * D;
            sum_of_row(factor[half], table + line[half], mask[half], n, lane);
#pragma unroll
            for (int head = 0; head < HEADS; head++) enough = enough && factor[half][head] > LEAST_SUM;
        }
        enough = __all_sync(FULL, enough);
        if (!enough)
            for (int half = 0; half < 2; half++)
                softmax_of_row(largest[half], factor[half], scores + line[half], mask[half], n, lane);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int head = 0; head < HEADS; head++) factor[half][head] = 1.f / factor[half][head];

        // Attention weights times values.
        float x1[16][4] = {}, var[2];
        for (int k = 0; k < columns; k += 16) {
            u32 a[PARTS][4];
#pragma unroll
            for (int q = 0; q < 4; q++) {
                int half = q % 2, c = k + q / 2 * 8 + lane % 4 * 2;
                float p[2] = {};
                if (c < mixed) {
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        u32 where = place[c + e], j = where >> 16 & 31, x = where >> 21 & 1, head = where >> 22;
                        float most = largest[half][0], by = factor[half][0];
#pragma unroll
                        for (int h = 1; h < HEADS; h++)
                            most = head == h ? largest[half][h] : most, by = head == h ? factor[half][h] : by;
                        if ((mask[half] >> j & 1) == x) {
                            u32 at = line[half] + (where & 0xffff);
                            p[e] = (enough ? table[at] : expf(scores[at] - most)) * by;
                        }
                    }
                    if (mix && row[half] < rows)
                        *(float2*)(mix + ((u64)r * rows + row[half]) * mixed + c) = make_float2(p[0], p[1]);
                }
                put_left(a, q, p[0] * FACTOR, p[1] * FACTOR);
            }
            product_step(x1, a, values_at, pitch, k, lane);
        }

        // Residual, first norm.
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int t = 0; t < 16; t++) {
                int c = t * 8 + lane % 4 * 2;
                float2 e = *(const float2*)(token[half] + c);
                x1[t][half * 2] = e.x + (x1[t][half * 2] * (inverse_v / FACTOR) + vectors[c]);
                x1[t][half * 2 + 1] = e.y + (x1[t][half * 2 + 1] * (inverse_v / FACTOR) + vectors[c + 1]);
            }
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
