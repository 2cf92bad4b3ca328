// LayerNorm with what stands around it.

// x [R, B * m, D], in: what attention adds; out: xhat of (embedded token + attention + bias). var [R, B * m].
extern "C" __global__ void norm_embedded(number* x, number* var, const number* E, const u8* bits, const number* params, u64 P,
                                         u64 bias, int B, int n, int m, int sets) {
    int row = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = row < B * m;
    if (!real) row = B * m - 1;
    int b = row / m, i = n - m + row % m;
    int t = 2 * i + bits[((u64)(r % sets) * B + b) * n + i];
    number v[PER], e[PER], a[PER], square;
    u64 at = (u64)r * B * m + row;
    load(v, x + at * D, lane);
    load(e, E + ((u64)r * 2 * n + t) * D, lane);
    load(a, params + r * P + bias, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) v[k] = e[k] + (v[k] + a[k]);
    normalise(v, lane, &square);
    if (real) {
        store(x + at * D, v, lane);
        if (lane == 0) var[at] = square;
    }
}

// x [R, rows, D], in: what a block adds; out: xhat of (residual + x + bias). The residual is scale * res + shift, or res itself
// where `scaled` is 0.
extern "C" __global__ void norm_residual(number* x, number* var, const number* res, const number* params, u64 P, int scaled, u64 scale,
                                         u64 shift, u64 bias, int rows) {
    int row = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = row < rows;
    if (!real) row = rows - 1;
    number v[PER], e[PER], a[PER], square;
    u64 at = (u64)r * rows + row;
    load(v, x + at * D, lane);
    load(e, res + at * D, lane);
    if (scaled) {
        number g[PER], s[PER];
        load(g, params + r * P + scale, lane);
        load(s, params + r * P + shift, lane);
#pragma unroll
        for (int k = 0; k < PER; k++) e[k] = e[k] * g[k] + s[k];
    }
    load(a, params + r * P + bias, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) v[k] = e[k] + (v[k] + a[k]);
    normalise(v, lane, &square);
    if (real) {
        store(x + at * D, v, lane);
        if (lane == 0) var[at] = square;
    }
}

// The first LayerNorm of a layer, backwards. g [R, B * m, D], in: what the feed-forward block sends to xhat; out: the gradient of
// its input. `after` is the gradient that reaches the block's output, and through the residual path scale * xhat + shift as well.
// parts [R, chunks, m, 3, D]: over the strings of a chunk the sums of the result where the bit is 0, where it is 1, and of after * xhat.
extern "C" __global__ void norm1_backward(number* g, const number* after, const number* xhat, const number* var, const number* params,
                                          u64 P, u64 scale, const u8* bits, number* parts, int B, int n, int m, int sets, int chunk) {
    __shared__ number sums[GROUPS * 3 * D];
    int group = threadIdx.x / LANES, lane = threadIdx.x % LANES, i = blockIdx.y, r = blockIdx.z;
    number weight[PER], zero[PER] = {}, one[PER] = {}, along[PER] = {};
    load(weight, params + r * P + scale, lane);
    // Every group makes the same number of turns, since the lanes of a warp add up together.
    for (int turn = 0; turn * GROUPS < chunk; turn++) {
        int b = blockIdx.x * chunk + turn * GROUPS + group;
        bool real = b < B && turn * GROUPS + group < chunk;
        if (!real) b = B - 1;
        u64 at = ((u64)r * B + b) * m + i;
        number v[PER], a[PER], x[PER];
        load(v, g + at * D, lane);
        load(a, after + at * D, lane);
        load(x, xhat + at * D, lane);
#pragma unroll
        for (int k = 0; k < PER; k++) v[k] += a[k] * weight[k];
        normalise_backward(v, x, var[at]);
        if (real) {
            store(g + at * D, v, lane);
            bool bit = bits[((u64)(r % sets) * B + b) * n + n - m + i];
#pragma unroll
            for (int k = 0; k < PER; k++) {
                zero[k] += bit ? 0.f : v[k];
                one[k] += bit ? v[k] : 0.f;
                along[k] += a[k] * x[k];
            }
        }
    }
    store(sums + (group * 3 + 0) * D, zero, lane);
    store(sums + (group * 3 + 1) * D, one, lane);
    store(sums + (group * 3 + 2) * D, along, lane);
    __syncthreads();
    number* out = parts + (((u64)r * gridDim.x + blockIdx.x) * m + i) * 3 * D;
    for (int k = threadIdx.x; k < 3 * D; k += THREADS) {
        number sum = 0.f;
        for (int v = 0; v < GROUPS; v++) sum += sums[v * 3 * D + k];
        out[k] = sum;
    }
}

// parts [R, chunks, m, 3, D] as norm1_backward's, from its result g already there; the sums of after * xhat are left out.
extern "C" __global__ void token_sums(const number* __restrict__ g, const u8* __restrict__ bits, number* __restrict__ parts, int B, int n,
                                      int m, int sets, int chunk) {
    __shared__ number sums[GROUPS * 2 * D];
    int group = threadIdx.x / LANES, lane = threadIdx.x % LANES, i = blockIdx.y, r = blockIdx.z;
    int end = min(B, (int)(blockIdx.x + 1) * chunk);
    number zero[PER] = {}, one[PER] = {};
#pragma unroll 4
    for (int b = blockIdx.x * chunk + group; b < end; b += GROUPS) {
        number v[PER];
        load(v, g + (((u64)r * B + b) * m + i) * D, lane);
        bool bit = bits[((u64)(r % sets) * B + b) * n + n - m + i];
#pragma unroll
        for (int k = 0; k < PER; k++) {
            zero[k] += bit ? 0.f : v[k];
            one[k] += bit ? v[k] : 0.f;
        }
    }
    store(sums + (group * 2 + 0) * D, zero, lane);
    store(sums + (group * 2 + 1) * D, one, lane);
    __syncthreads();
    number* out = parts + (((u64)r * gridDim.x + blockIdx.x) * m + i) * 3 * D;
    for (int k = threadIdx.x; k < 2 * D; k += THREADS) {
        number sum = 0.f;
        for (int v = 0; v < GROUPS; v++) sum += sums[v * 2 * D + k];
        out[k] = sum;
    }
}

// From the parts of norm1_backward: table [R, 2n, D], the gradient by token (zero at positions not computed), and the scale's
// gradient as far as `after` knows it: from the same parts, or from those given as along [R, alongs, D].
extern "C" __global__ void gather_tokens(number* table, const number* parts, const number* along, int alongs, number* grads, u64 P, u64 scale,
                                         int chunks, int n, int m) {
    int t = blockIdx.x, x = t % 2, i = t / 2 - (n - m), r = blockIdx.y;
    for (int c = threadIdx.x; c < D; c += blockDim.x) {
        const number* column = parts + (u64)r * chunks * m * 3 * D + c;
        number sum = 0.f;
        if (i >= 0)
            for (int k = 0; k < chunks; k++) sum += column[(((u64)k * m + i) * 3 + x) * D];
        table[((u64)r * 2 * n + t) * D + c] = sum;
        if (t == 0) {
            number total = 0.f;
            if (along)
                for (int k = 0; k < alongs; k++) total += along[((u64)r * alongs + k) * D + c];
            else
                for (int k = 0; k < chunks * m; k++) total += column[((u64)k * 3 + 2) * D];
            grads[r * P + scale + c] = total;
        }
    }
}

// The second LayerNorm of a layer below a middle one, backwards: dY = g + direct [R, rows, D] -> gradient of its input, in g.
// parts [R, chunks, 2, D]: sums of dY * xhat and of dY.
extern "C" __global__ void norm2_backward(number* g, const number* direct, const number* xhat, const number* var, const number* params, u64 P, u64 scale,
                                          number* parts, int rows, int chunk) {
    __shared__ number sums[GROUPS * 2 * D];
    int group = threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    number weight[PER], along[PER] = {}, plain[PER] = {};
    load(weight, params + r * P + scale, lane);
    for (int turn = 0; turn * GROUPS < chunk; turn++) {
        int row = blockIdx.x * chunk + turn * GROUPS + group;
        bool real = row < rows && turn * GROUPS + group < chunk;
        if (!real) row = rows - 1;
        u64 at = (u64)r * rows + row;
        number v[PER], x[PER], a[PER];
        load(v, g + at * D, lane);
        load(a, direct + at * D, lane);
        load(x, xhat + at * D, lane);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            v[k] += a[k];
            along[k] += real ? v[k] * x[k] : 0.f;
            plain[k] += real ? v[k] : 0.f;
            v[k] *= weight[k];
        }
        normalise_backward(v, x, var[at]);
        if (real) store(g + at * D, v, lane);
    }
    store(sums + (group * 2 + 0) * D, along, lane);
    store(sums + (group * 2 + 1) * D, plain, lane);
    __syncthreads();
    number* out = parts + ((u64)r * gridDim.x + blockIdx.x) * 2 * D;
    for (int k = threadIdx.x; k < 2 * D; k += THREADS) {
        number sum = 0.f;
        for (int v = 0; v < GROUPS; v++) sum += sums[v * 2 * D + k];
        out[k] = sum;
    }
}

// From total [R, 2, D], the sums of norm2_backward over rows, into the places of scale and shift.
extern "C" __global__ void pair_gradients(number* grads, const number* total, u64 P, u64 scale, u64 shift) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c >= D) return;
    grads[r * P + scale + c] = total[(u64)r * 2 * D + c];
    grads[r * P + shift + c] = total[(u64)r * 2 * D + D + c];
}

// The factors of one LayerNorm on each string, over its m positions: out [4, R, B, norms] at column `norm`, the largest and the
// mean of 1/std (unbiased, no eps), the largest and the mean of 1/sqrt(var + eps).
extern "C" __global__ void norm_factors(float* out, const number* var, int R, int B, int m, int norm, int norms) {
    int b = blockIdx.x * THREADS + threadIdx.x, r = blockIdx.y;
    if (b >= B) return;
    number most = 0.f, mean = 0.f, most_eps = 0.f, mean_eps = 0.f;
    for (int i = 0; i < m; i++) {
        number v = var[((u64)r * B + b) * m + i];
        number plain = 1.f / sqrt(v * D / (D - 1)), with_eps = 1.f / sqrt(v + EPS);
        most = fmax(most, plain), mean += plain;
        most_eps = fmax(most_eps, with_eps), mean_eps += with_eps;
    }
    u64 plane = (u64)R * B * norms, at = ((u64)r * B + b) * norms + norm;
    out[at] = most, out[at + plane] = mean / m, out[at + 2 * plane] = most_eps, out[at + 3 * plane] = mean_eps / m;
}
