// Attention weights of layer 1 for n <= 32: those of 16 rows (b, i) of a warp, four lanes to a row. A lane has of its rows lane / 4 and
// lane / 4 + 8 the positions j = 4 k + lane % 4, as products on tensor cores want them.

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

// The table of one replica's exponents T [HEADS, 2n, 2n] into shared memory [2n, LINE], to be waited for.
__device__ __forceinline__ void load_table(Entry* table, const float* T, int n) {
    for (int k = threadIdx.x; k < 2 * n * 64; k += blockDim.x) {
        int line = k / 64, column = k % 64;
#pragma unroll
        for (int head = 0; head < HEADS; head++) table[line * LINE + column].e[head] = column < 2 * n ? T[(head * 2 * n + line) * 2 * n + column] : 0.f;
    }
}

// p: the weights of both rows, whose tokens are `token` and whose strings are `mask`; 0 beyond the last position. S: the replica's scores.
__device__ __forceinline__ void weights_of_rows(float (*p)[HEADS][8], const Entry* table, const float* S, const u32* token, const u32* mask, int n,
                                                int lane) {
    float sum[2][HEADS];
    bool enough = true;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const Entry* entries = table + token[half] * LINE + lane % 4 * 2;
        u32 bits = mask[half] >> lane % 4;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            Entry entry = entries[8 * k + (bits >> 4 * k & 1)];
#pragma unroll
            for (int head = 0; head < HEADS; head++) p[half][head][k] = entry.e[head];
        }
        sum_of_row(sum[half], p[half]);
#pragma unroll
        for (int head = 0; head < HEADS; head++) enough = enough && sum[half][head] > LEAST_SUM;
    }
    if (!__all_sync(FULL, enough))
#pragma unroll
        for (int half = 0; half < 2; half++) {
            exponents_of_row(p[half], S + token[half] * 2 * n, mask[half], n, lane);
            sum_of_row(sum[half], p[half]);
        }
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int head = 0; head < HEADS; head++) {
            float factor = 1.f / sum[half][head];
#pragma unroll
            for (int k = 0; k < 8; k++) p[half][head][k] *= factor;
        }
}

// A weight, times FACTOR, in place q of a left factor [PARTS][4]: of two columns, those of a position's bits 0 and 1, one is 0.
__device__ __forceinline__ void put_weight(u32 (*a)[4], int q, float p, u32 bit) {
    p *= FACTOR;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        u32 one = halves(p, 0.f);
        a[part][q] = one << 16 * bit;
        p -= from_half((unsigned short)one);
    }
}
