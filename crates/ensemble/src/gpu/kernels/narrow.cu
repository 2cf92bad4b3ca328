// Layer 1's attention over long inputs for narrow networks: no weight of a (string, i, j) is ever stored. T and `largest` are those of
// `exponents`, strings and columns those of `pack`.
#if D * HEADS <= 16

#define STRINGS 128 // a thread for each
#define ROWS (D * HEADS > 8 ? 2 : 4) // positions i of each that a thread of `attend_narrow` does
#define LINES 8 // positions i that a block of `attend_narrow_backward` does
#define FAR 60.f // where the string's largest score is further below that of the table than this, e to it is no float to multiply with

// x [R, B * m, D] = sum over heads of attended [R, B * m, HEADS, D] = sum_j p_j V_j. sums [R, B * m, HEADS, 2]: the score subtracted in the
// softmax, and one over the sum of what is left. A block does 128 strings at some positions i.
extern "C" __global__ void __launch_bounds__(STRINGS)
    attend_narrow(number* __restrict__ x, number* __restrict__ attended, number* __restrict__ sums, const number* __restrict__ S,
                  const number* __restrict__ T, const number* __restrict__ largest, const number* __restrict__ V,
                  const u32* __restrict__ strings, int B, int n, int m, int sets) {
    const int pitch = ROWS * HEADS * 4 + 2; // an even number of banks on for the next j
    __shared__ number table[32 * pitch];    // [32 of the j][ROWS][HEADS][x_i][x_j]
    __shared__ __align__(16) number values[HEADS * 64 * D];
    int r = blockIdx.z, b = blockIdx.y * STRINGS + threadIdx.x, first = blockIdx.x * ROWS, words = (n + 31) / 32;
    bool real = b < B;
    if (!real) b = B - 1;
    const u32* own = strings + ((u64)(r % sets) * B + b) * words;
    S += (u64)r * HEADS * 4 * n * n, T += (u64)r * HEADS * 4 * n * n, V += (u64)r * HEADS * 2 * n * D, largest += (u64)r * HEADS * 2 * n;
    int bit[ROWS];
    number sum[ROWS][HEADS] = {}, out[ROWS][HEADS][D] = {};
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        int i = min(n - m + first + k, n - 1);
        bit[k] = own[i / 32] >> i % 32 & 1;
    }
    for (int w = 0; w < words; w++) {
        __syncthreads();
#pragma unroll 4
        for (int k = threadIdx.x; k < 64 * 2 * HEADS * ROWS; k += STRINGS) {
            int column = k % 64, xi = k / 64 % 2, head = k / 128 % HEADS, row = k / 128 / HEADS, i = n - m + first + row;
            bool there = w * 32 + column / 2 < n && i < n;
            table[column / 2 * pitch + (row * HEADS + head) * 4 + xi * 2 + column % 2] =
                there ? T[(u64)(head * 2 * n + 2 * i + xi) * 2 * n + w * 64 + column] : 0.f;
        }
        for (int k = threadIdx.x; k < HEADS * 64 * D; k += STRINGS) {
            int head = k / (64 * D), rest = k % (64 * D);
            values[k] = w * 64 + rest / D < 2 * n ? V[(u64)(head * 2 * n + w * 64) * D + rest] : 0.f;
        }
        __syncthreads();
        u32 word = own[w];
#pragma unroll 4
        for (int j = 0; j < 32; j++) {
            int xj = word >> j & 1;
            const number *entry = table + j * pitch + xj, *value = values + (2 * j + xj) * D;
#pragma unroll
            for (int head = 0; head < HEADS; head++) {
                number v[D];
#pragma unroll
                for (int c = 0; c < D; c++) v[c] = value[head * 64 * D + c];
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    number p = entry[(k * HEADS + head) * 4 + bit[k] * 2];
                    sum[k][head] += p;
#pragma unroll
                    for (int c = 0; c < D; c++) out[k][head][c] += p * v[c];
                }
            }
        }
    }
    if (!real) return;

    u32 poor = 0;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (first + k >= m) break;
        u64 row = ((u64)r * B + b) * m + first + k;
        int t = 2 * (n - m + first + k) + bit[k];
        number total[D] = {};
#pragma unroll
        for (int head = 0; head < HEADS; head++) {
            if (!(sum[k][head] > LEAST_SUM)) poor |= 1u << (k * HEADS + head);
            number factor = 1.f / sum[k][head];
            sums[(row * HEADS + head) * 2] = largest[head * 2 * n + t], sums[(row * HEADS + head) * 2 + 1] = factor;
#pragma unroll
            for (int c = 0; c < D; c++) {
                out[k][head][c] *= factor;
                total[c] += attended[(row * HEADS + head) * D + c] = out[k][head][c];
            }
        }
#pragma unroll
        for (int c = 0; c < D; c++) x[row * D + c] = total[c];
    }

    // With the string's own largest, where the table's served badly.
    for (; poor; poor &= poor - 1) {
        int k = (__ffs(poor) - 1) / HEADS, head = (__ffs(poor) - 1) % HEADS, i = n - m + first + k;
        u64 row = ((u64)r * B + b) * m + first + k;
        const number* line = S + (u64)(head * 2 * n + 2 * i + (own[i / 32] >> i % 32 & 1)) * 2 * n;
        number most = -3.4e38f, all = 0.f, mix[D] = {};
        for (int j = 0; j < n; j++) most = fmax(most, line[2 * j + (own[j / 32] >> j % 32 & 1)]);
        for (int j = 0; j < n; j++) {
            int t = 2 * j + (own[j / 32] >> j % 32 & 1);
            number p = exp(line[t] - most);
            all += p;
#pragma unroll
            for (int c = 0; c < D; c++) mix[c] += p * V[(u64)(head * 2 * n + t) * D + c];
        }
        sums[(row * HEADS + head) * 2] = most, sums[(row * HEADS + head) * 2 + 1] = 1.f / all;
#pragma unroll
        for (int c = 0; c < D; c++) {
            number value = mix[c] / all, *before = attended + (row * HEADS + head) * D + c;
            *before = value;
            number total = 0.f;
            for (int other = 0; other < HEADS; other++) total += attended[(row * HEADS + other) * D + c];
            x[row * D + c] = total;
        }
    }
}

// From g [R, B * m, D], the gradient of attend_narrow's x: dS [R, HEADS, 2n, 2n] (m is n), and parts [R, blocks, HEADS * 2n, D] of that of V.
// With p = T / Z the sums over strings need no p: by x_i and x_j it is enough to sum g / Z and (g . attended) / Z. A thread does one j.
extern "C" __global__ void __launch_bounds__(STRINGS)
    attend_narrow_backward(number* __restrict__ dS, number* __restrict__ parts, const number* __restrict__ g,
                           const number* __restrict__ attended, const number* __restrict__ sums, const number* __restrict__ S,
                           const number* __restrict__ T, const number* __restrict__ largest, const number* __restrict__ V,
                           const u32* __restrict__ strings, const u32* __restrict__ columns, int B, int n, int sets) {
    const int all = HEADS * (D + 1), pitch = (all + HEADS + 3) / 4 * 4;
    __shared__ __align__(16) number rows[STRINGS * pitch]; // of a string: g / Z by head, (g . attended) / Z, the score subtracted
    __shared__ u32 near[STRINGS / 32], far[STRINGS / 32];
    int r = blockIdx.z, j = blockIdx.x * STRINGS + threadIdx.x, words = (n + 31) / 32, down = (B + 31) / 32, warp = threadIdx.x / 32;
    bool mine = j < n;
    u64 table = (u64)r * HEADS * 4 * n * n;
    const number *score = S + table, *value = V + (u64)r * HEADS * 2 * n * D;
    strings += (u64)(r % sets) * B * words, columns += (u64)(r % sets) * down * n;
    number dV[2][HEADS][D] = {};
    for (int line = 0; line < LINES * 2; line++) {
        int i = blockIdx.y * LINES + line / 2, xi = line % 2;
        if (i >= n) break;
        number sum[2][HEADS * (D + 1)] = {}, rest[2][HEADS] = {};
        for (int begin = 0; begin < B; begin += STRINGS) {
            int b = begin + threadIdx.x;
            bool own = b < B && (strings[(u64)b * words + i / 32] >> i % 32 & 1) == xi, close = true;
            __syncthreads();
            if (own) {
                u64 at = ((u64)r * B + b) * n + i;
                number out[D], factor[HEADS], *to = rows + threadIdx.x * pitch;
#pragma unroll
                for (int c = 0; c < D; c++) out[c] = g[at * D + c];
#pragma unroll
                for (int head = 0; head < HEADS; head++) {
                    number base = sums[(at * HEADS + head) * 2], above = largest[((u64)r * HEADS + head) * 2 * n + 2 * i + xi] - base;
                    close = close && above < FAR;
                    factor[head] = exp(above);
                    to[all + head] = base;
                }
#pragma unroll
                for (int head = 0; head < HEADS; head++) {
                    number by = sums[(at * HEADS + head) * 2 + 1] * (close ? factor[head] : (number)1), dot = 0.f;
#pragma unroll
                    for (int c = 0; c < D; c++) {
                        dot += out[c] * attended[(at * HEADS + head) * D + c];
                        to[head * D + c] = out[c] * by;
                    }
                    to[HEADS * D + head] = dot * by;
                }
            }
            u32 some = __ballot_sync(0xffffffffu, own && close), others = __ballot_sync(0xffffffffu, own && !close);
            if (threadIdx.x % 32 == 0) near[warp] = some, far[warp] = others;
            __syncthreads();
            for (int w = 0; w < STRINGS / 32 && begin + w * 32 < B; w++) {
                u32 column = mine ? columns[(u64)(begin / 32 + w) * n + j] : 0;
                for (u32 left = near[w]; left; left &= left - 1) {
                    int s = __ffs(left) - 1;
                    const number* from = rows + (w * 32 + s) * pitch;
                    bool one = column >> s & 1;
#pragma unroll
                    for (int c = 0; c < HEADS * (D + 1); c++) {
                        number v = from[c];
                        if (one) sum[1][c] += v;
                        else sum[0][c] += v;
                    }
                }
                // Strings whose scores are too far below the table's largest, one by one.
                for (u32 left = far[w]; mine && left; left &= left - 1) {
                    int s = __ffs(left) - 1, xj = column >> s & 1;
                    const number* from = rows + (w * 32 + s) * pitch;
#pragma unroll
                    for (int head = 0; head < HEADS; head++) {
                        u64 t = (u64)head * 2 * n + 2 * j + xj;
                        number p = exp(score[(u64)(head * 2 * n + 2 * i + xi) * 2 * n + 2 * j + xj] - from[all + head]), along = 0.f;
#pragma unroll
                        for (int c = 0; c < D; c++) {
                            number v = p * from[head * D + c];
                            along += v * value[t * D + c];
                            if (xj) dV[1][head][c] += v;
                            else dV[0][head][c] += v;
                        }
                        along -= p * from[HEADS * D + head];
                        if (xj) rest[1][head] += along;
                        else rest[0][head] += along;
                    }
                }
            }
        }
        if (!mine) continue;
#pragma unroll
        for (int xj = 0; xj < 2; xj++)
#pragma unroll
            for (int head = 0; head < HEADS; head++) {
                u64 at = table + (u64)(head * 2 * n + 2 * i + xi) * 2 * n + 2 * j + xj, t = (u64)head * 2 * n + 2 * j + xj;
                number e = T[at], along = -sum[xj][HEADS * D + head];
#pragma unroll
                for (int c = 0; c < D; c++) {
                    along += sum[xj][head * D + c] * value[t * D + c];
                    dV[xj][head][c] += e * sum[xj][head * D + c];
                }
                dS[at] = e * along + rest[xj][head];
            }
    }
    if (!mine) return;
    number* out = parts + ((u64)r * gridDim.y + blockIdx.y) * HEADS * 2 * n * D;
#pragma unroll
    for (int xj = 0; xj < 2; xj++)
#pragma unroll
        for (int head = 0; head < HEADS; head++)
#pragma unroll
            for (int c = 0; c < D; c++) out[(u64)(head * 2 * n + 2 * j + xj) * D + c] = dV[xj][head][c];
}
#endif
