// Layer 1 by tables: it sees only the 2n tokens t = 2 i + x.

// E [R, 2n, D]: the embedded tokens.
extern "C" __global__ void embed(number* E, const number* params, u64 P, u64 token, u64 position, int n) {
    int t = blockIdx.x, x = t % 2, i = t / 2, r = blockIdx.y;
    const number *tok = params + r * P + token, *pos = params + r * P + position;
    number* row = E + ((u64)r * 2 * n + t) * D;
    for (int c = threadIdx.x; c < D; c += blockDim.x)
        row[c] = CONCAT ? (c < D / 2 ? tok[x * (D / 2) + c] : pos[i * (D / 2) + c - D / 2]) : tok[x * D + c] + pos[i * D + c];
}

// The gradient of E into those of both embeddings.
extern "C" __global__ void embed_backward(const number* dE, number* grads, u64 P, u64 token, u64 position, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c >= D) return;
    number *tok = grads + r * P + token, *pos = grads + r * P + position;
    const number* column = dE + (u64)r * 2 * n * D + c;
    if (!CONCAT || c < D / 2)
        for (int x = 0; x < 2; x++) {
            number sum = 0.f;
            for (int i = 0; i < n; i++) sum += column[(u64)(2 * i + x) * D];
            tok[x * (CONCAT ? D / 2 : D) + c] = sum;
        }
    if (!CONCAT || c >= D / 2)
        for (int i = 0; i < n; i++)
            pos[i * (CONCAT ? D / 2 : D) + c - (CONCAT ? D / 2 : 0)] = column[(u64)2 * i * D] + column[(u64)(2 * i + 1) * D];
}

// Of each line of the scores S [R, HEADS * 2n, 2n] its largest [R, HEADS * 2n], and T, what exp(score - largest) is. A warp for each.
extern "C" __global__ void exponents(number* __restrict__ T, number* __restrict__ largest, const number* __restrict__ S, int n) {
    int line = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (line >= HEADS * 2 * n) return;
    u64 all = (u64)blockIdx.y * HEADS * 2 * n + line;
    const number* own = S + all * 2 * n;
    number most = -3.4e38f;
#pragma unroll 4
    for (int t = lane; t < 2 * n; t += 32) most = fmax(most, own[t]);
    most = max_over_warp(most);
#pragma unroll 4
    for (int t = lane; t < 2 * n; t += 32) T[all * 2 * n + t] = exp(own[t] - most);
    if (lane == 0) largest[all] = most;
}

// mix [R, B * m, HEADS * 2n]: softmax over j of the scores S [R, HEADS, 2n, 2n], put at the token that stands at j; zero at the
// other. The m last positions i are computed. One warp for each (b, i), lanes are the j.
extern "C" __global__ void attend(number* __restrict__ mix, const number* __restrict__ S, const u8* __restrict__ bits, int B, int n, int m,
                                  int sets) {
    int warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    if (warp >= B * m) return;
    int b = warp / m, i = n - m + warp % m;
    const u8* x = bits + ((u64)(r % sets) * B + b) * n;
    u64 scores = ((u64)r * HEADS * 2 * n + 2 * i + x[i]) * 2 * n, out = ((u64)r * B * m + warp) * HEADS * 2 * n;
    for (int head = 0; head < HEADS; head++, scores += (u64)4 * n * n, out += 2 * n) {
        number largest = -3.4e38f, sum = 0.f;
        for (int j = lane; j < n; j += 32) largest = fmax(largest, S[scores + 2 * j + x[j]]);
        largest = max_over_warp(largest);
        for (int j = lane; j < n; j += 32) sum += exp(S[scores + 2 * j + x[j]] - largest);
        sum = 1.f / sum_over_warp(sum);
        for (int j = lane; j < n; j += 32) {
            number p = exp(S[scores + 2 * j + x[j]] - largest) * sum;
            mix[out + 2 * j] = x[j] ? 0.f : p;
            mix[out + 2 * j + 1] = x[j] ? p : 0.f;
        }
    }
}

// The same for n <= 32, where a lane has one j: one warp for each b, with all its positions.
extern "C" __global__ void attend_short(number* __restrict__ mix, const number* __restrict__ S, const u8* __restrict__ bits, int B, int n,
                                        int m, int sets) {
    int b = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    if (b >= B) return;
    bool real = lane < n;
    int x = real ? bits[((u64)(r % sets) * B + b) * n + lane] : 0, token = 2 * lane + x;
    const number* own = S + (u64)r * HEADS * 4 * n * n;
    number* out = mix + ((u64)r * B + b) * m * HEADS * 2 * n;
#pragma unroll 2
    for (int row = 0; row < m; row++) {
        int at = __shfl_sync(0xffffffffu, token, n - m + row) * 2 * n + token;
#pragma unroll
        for (int head = 0; head < HEADS; head++) {
            number score = real ? own[head * 4 * n * n + at] : -3.4e38f;
            number largest = max_over_warp(score), e = real ? exp(score - largest) : 0.f;
            number p = e / sum_over_warp(e);
            number* to = out + (row * HEADS + head) * 2 * n + 2 * lane;
            if (real) to[0] = x ? 0.f : p, to[1] = x ? p : 0.f;
        }
    }
}

// parts [R, chunks, m, HEADS, 2, 2n]: the gradient of the scores, summed over the strings of a chunk. A block does one
// (chunk, i, head); each of its warps sums some strings into its own 4n numbers of shared memory, and the warps are then added in order.
extern "C" __global__ void attend_backward(number* __restrict__ parts, const number* __restrict__ mix, const number* __restrict__ dmix,
                                           const u8* __restrict__ bits, int B, int n, int m, int sets, int chunk) {
    extern __shared__ number sums[];
    int warps = blockDim.x / 32, w = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.z;
    int head = blockIdx.y % HEADS, row = blockIdx.y / HEADS, i = n - m + row;
    for (int k = threadIdx.x; k < warps * 4 * n; k += blockDim.x) sums[k] = 0.f;
    __syncthreads();
    int end = min(B, (int)(blockIdx.x + 1) * chunk);
    if (n <= 32) {
        number sum[4] = {}; // by x_i and x_j
#pragma unroll 4
        for (int b = blockIdx.x * chunk + w; b < end; b += warps) {
            const u8* x = bits + ((u64)(r % sets) * B + b) * n;
            u64 at = ((((u64)r * B + b) * m + row) * HEADS + head) * 2 * n + 2 * lane;
            int own = x[i], other = lane < n ? x[lane] : 0;
            number p = lane < n ? mix[at + other] : 0.f, g = lane < n ? dmix[at + other] : 0.f;
            g = p * (g - sum_over_warp(p * g));
#pragma unroll
            for (int k = 0; k < 4; k++) sum[k] += own * 2 + other == k ? g : 0.f;
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (lane < n) sums[w * 4 * n + k / 2 * 2 * n + 2 * lane + k % 2] = sum[k];
    } else {
        for (int b = blockIdx.x * chunk + w; b < end; b += warps) {
            const u8* x = bits + ((u64)(r % sets) * B + b) * n;
            u64 at = ((((u64)r * B + b) * m + row) * HEADS + head) * 2 * n;
            number* own = sums + w * 4 * n + x[i] * 2 * n;
            number dot = 0.f;
            for (int j = lane; j < n; j += 32) {
                int t = 2 * j + x[j];
                dot += mix[at + t] * dmix[at + t];
            }
            dot = sum_over_warp(dot);
            for (int j = lane; j < n; j += 32) {
                int t = 2 * j + x[j];
                own[t] += mix[at + t] * (dmix[at + t] - dot);
            }
        }
    }
    __syncthreads();
    number* out = parts + (((u64)r * gridDim.x + blockIdx.x) * m * HEADS + blockIdx.y) * 4 * n;
    for (int k = threadIdx.x; k < 4 * n; k += blockDim.x) {
        number sum = 0.f;
        for (int v = 0; v < warps; v++) sum += sums[v * 4 * n + k];
        out[k] = sum;
    }
}

// dS [R, HEADS, 2n, 2n] from the parts of attend_backward; zero where the position is not computed.
extern "C" __global__ void gather_scores(number* dS, const number* parts, int chunks, int n, int m) {
    int t = blockIdx.x % (2 * n), head = blockIdx.x / (2 * n), r = blockIdx.y, x = t % 2, row = t / 2 - (n - m);
    for (int column = threadIdx.x; column < 2 * n; column += blockDim.x) {
        number sum = 0.f;
        if (row >= 0)
            for (int k = 0; k < chunks; k++)
                sum += parts[(((((u64)r * chunks + k) * m + row) * HEADS + head) * 2 + x) * 2 * n + column];
        dS[(((u64)r * HEADS + head) * 2 * n + t) * 2 * n + column] = sum;
    }
}
