// The last layer, read at one position: with y = scale * xhat + shift the layer below's output, the query is folded into
// u = Wk^T q / sqrt(dh), the mix c = sum_j p_j y_j goes through Wv afterwards. Shift drops out of the softmax.

// u [R, B, HEADS, D] -> p [R, B, HEADS, n], mean [R, B, HEADS, D] = sum_j p_j xhat_j, and c = scale * mean + shift. One pass over
// xhat [R, B, n, D] by the running softmax.
extern "C" __global__ void attend_last(number* __restrict__ p, number* __restrict__ mean, number* __restrict__ c_out, const number* __restrict__ u, const number* __restrict__ xhat, const number* __restrict__ params,
                                       u64 P, u64 scale, u64 shift, int B, int n) {
    int b = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    u64 string = (u64)r * B + b;
    number weight[PER], offset[PER], query[HEADS][PER], mix[HEADS][PER], largest[HEADS], sum[HEADS];
    load(weight, params + r * P + scale, lane);
    load(offset, params + r * P + shift, lane);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        load(query[h], u + (string * HEADS + h) * D, lane);
        largest[h] = -3.4e38f, sum[h] = 0.f;
#pragma unroll
        for (int k = 0; k < PER; k++) query[h][k] *= weight[k], mix[h][k] = 0.f;
    }
#pragma unroll 4
    for (int j = 0; j < n; j++) {
        number x[PER];
        load(x, xhat + (string * n + j) * D, lane);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            number score = 0.f;
#pragma unroll
            for (int k = 0; k < PER; k++) score += query[h][k] * x[k];
            score = sum_over_group(score);
            if (real && lane == 0) p[(string * HEADS + h) * n + j] = score;
            number now = fmax(largest[h], score), keep = exp(largest[h] - now), e = exp(score - now);
            sum[h] = sum[h] * keep + e;
#pragma unroll
            for (int k = 0; k < PER; k++) mix[h][k] = mix[h][k] * keep + e * x[k];
            largest[h] = now;
        }
    }
    __syncwarp();
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        number factor = 1.f / sum[h];
        u64 at = string * HEADS + h;
#pragma unroll
        for (int k = 0; k < PER; k++) mix[h][k] *= factor;
        if (!real) continue;
        store(mean + at * D, mix[h], lane);
#pragma unroll
        for (int k = 0; k < PER; k++) mix[h][k] = mix[h][k] * weight[k] + offset[k];
        store(c_out + at * D, mix[h], lane);
        for (int j = lane; j < n; j += LANES) p[at * n + j] = exp(p[at * n + j] - largest[h]) * factor;
    }
}

// From dc [R, B, HEADS, D]: du [R, B, HEADS, D], and ds [R, B, n, D], the gradient of the layer below, already through its second LayerNorm, but
// for what reaches its last position directly (attend_last_direct). sums [R, B, 3, D]: for each string, what it adds to the gradients of scale,
// shift and the bias below. dp [R, B, HEADS, n] is scratch: the gradient of p, up to a constant, which the softmax ignores.
// most [R], where given, is raised to the largest number of ds.
// A string's xhat is read twice: from shared memory, where all of it fits there (`near`), or the second time from a cache, it is hoped.
extern "C" __global__ void __launch_bounds__(THREADS, D > 64 ? 2 : 4)
    attend_last_backward(number* __restrict__ ds, float* most, number* __restrict__ sums, number* __restrict__ du, number* dp, const number* __restrict__ dc,
                         const number* __restrict__ u, const number* __restrict__ p, const number* __restrict__ means, const number* __restrict__ xhat,
                         const number* __restrict__ var, const number* __restrict__ params, u64 P, u64 scale, int B, int n, int near) {
    extern __shared__ __align__(16) u8 memory[]; // [groups, n, D] numbers
    int groups = blockDim.x / LANES, group = threadIdx.x / LANES, b = blockIdx.x * groups + group, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    u64 string = (u64)r * B + b;
    const number* rows = xhat + string * n * D;
#if __CUDA_ARCH__ >= 800
    if (near) {
        u8* own = memory + group * n * D * sizeof(number);
        for (int k = lane * 16; k < n * D * (int)sizeof(number); k += LANES * 16)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(own + k)), "l"((const u8*)rows + k));
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncwarp();
        rows = (const number*)own;
    }
#endif
    number weight[PER], out[HEADS][PER], sum[HEADS][PER], dots[HEADS], dscale[PER] = {}, dshift[PER] = {}, column[PER] = {};
    load(weight, params + r * P + scale, lane);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        load(out[h], dc + (string * HEADS + h) * D, lane);
        dots[h] = 0.f;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            dshift[k] += out[h][k];
            out[h][k] *= weight[k], sum[h][k] = 0.f;
        }
    }
#pragma unroll 4
    for (int j = 0; j < n; j++) {
        number x[PER];
        load(x, rows + j * D, lane);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            number g = 0.f;
#pragma unroll
            for (int k = 0; k < PER; k++) g += out[h][k] * x[k];
            g = sum_over_group(g);
            u64 at = (string * HEADS + h) * n + j;
            if (real && lane == 0) dp[at] = g;
            g *= p[at];
            dots[h] += g;
#pragma unroll
            for (int k = 0; k < PER; k++) sum[h][k] += g * x[k];
        }
    }
    __syncwarp();
    number query[HEADS][PER], mean_out[HEADS], mean_query[HEADS], largest = 0.f;
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        u64 at = (string * HEADS + h) * D;
        number m[PER], c[PER];
        load(m, means + at, lane);
        load(c, dc + at, lane);
        load(query[h], u + at, lane);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            sum[h][k] -= dots[h] * m[k];
            dscale[k] += query[h][k] * sum[h][k] + c[k] * m[k];
            sum[h][k] *= weight[k];
            query[h][k] *= weight[k];
        }
        if (real) store(du + at, sum[h], lane);
        mean_out[h] = mean_query[h] = 0.f;
#pragma unroll
        for (int k = 0; k < PER; k++) mean_out[h] += out[h][k], mean_query[h] += query[h][k];
        mean_out[h] = sum_over_group(mean_out[h]) / D, mean_query[h] = sum_over_group(mean_query[h]) / D;
    }
#pragma unroll 2
    for (int j = 0; j < n; j++) {
        u64 at = string * n + j;
        number x[PER], g[PER] = {}, mean = 0.f, along = 0.f, factor = 1.f / sqrt(var[at] + EPS);
        load(x, rows + j * D, lane);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            u64 pair = (string * HEADS + h) * n + j;
            number weight_j = p[pair], score_j = weight_j * (dp[pair] - dots[h]);
#pragma unroll
            for (int k = 0; k < PER; k++) g[k] += weight_j * out[h][k] + score_j * query[h][k];
            mean += weight_j * mean_out[h] + score_j * mean_query[h];
        }
        // normalise_backward, with the mean known.
#pragma unroll
        for (int k = 0; k < PER; k++) along += g[k] * x[k];
        along = sum_over_group(along) / D;
#pragma unroll
        for (int k = 0; k < PER; k++) g[k] = factor * (g[k] - mean - x[k] * along);
        if (real) store(ds + at * D, g, lane);
#pragma unroll
        for (int k = 0; k < PER; k++) column[k] += g[k];
        if (real) largest = largest_of_lane(largest, g);
    }
    if (most) raise(most + r, largest);
    if (!real) return;
    store(sums + (string * 3 + 0) * D, dscale, lane);
    store(sums + (string * 3 + 1) * D, dshift, lane);
    store(sums + (string * 3 + 2) * D, column, lane);
}

// Adds to ds, most and sums of attend_last_backward what reaches the last position of the layer below directly: dlast [R, B, D].
extern "C" __global__ void attend_last_direct(number* __restrict__ ds, float* most, number* __restrict__ sums, const number* __restrict__ dlast, const number* __restrict__ xhat,
                                              const number* __restrict__ var, const number* __restrict__ params, u64 P, u64 scale, int B, int n) {
    int b = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    u64 string = (u64)r * B + b, at = string * n + n - 1;
    number weight[PER], g[PER], x[PER], three[3][PER], old[PER];
    load(weight, params + r * P + scale, lane);
    load(g, dlast + string * D, lane);
    load(x, xhat + at * D, lane);
    load(old, ds + at * D, lane);
#pragma unroll
    for (int k = 0; k < 3; k++) load(three[k], sums + (string * 3 + k) * D, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) three[0][k] += g[k] * x[k], three[1][k] += g[k], g[k] *= weight[k];
    normalise_backward(g, x, var[at]);
#pragma unroll
    for (int k = 0; k < PER; k++) old[k] += g[k], three[2][k] += g[k];
    if (most) raise(most + r, real ? largest_of_lane(0.f, old) : 0.f);
    if (!real) return;
    store(ds + at * D, old, lane);
#pragma unroll
    for (int k = 0; k < 3; k++) store(sums + (string * 3 + k) * D, three[k], lane);
}

// out [R, B] = head . (scale * xhat + shift) + bias
extern "C" __global__ void head(number* out, const number* xhat, const number* params, u64 P, u64 head, u64 bias, u64 scale, u64 shift,
                                int B) {
    int b = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    const number* own = params + r * P;
    number x[PER], g[PER], s[PER], w[PER], sum = 0.f;
    load(x, xhat + ((u64)r * B + b) * D, lane);
    load(g, own + scale, lane);
    load(s, own + shift, lane);
    load(w, own + head, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) sum += w[k] * (x[k] * g[k] + s[k]);
    sum = sum_over_group(sum);
    if (real && lane == 0) out[(u64)r * B + b] = sum + own[bias];
}

// The loss, sum_b count_b (out_b - y_b)^2 / total, noted at losses[*step - *first][r]; dout [R, B]. One block a replica.
extern "C" __global__ void loss(number* dout, double* losses, const number* out, const float* labels, const u32* counts, const u64* step,
                                const u64* first, int B, double share, int R) {
    int r = blockIdx.y;
    double sum = 0.;
    for (int b = threadIdx.x; b < B; b += THREADS) {
        u64 at = (u64)r * B + b;
        number error = out[at] - labels[at], weight = (counts ? (number)counts[at] : 1.f) * (number)share;
        sum += (double)weight * error * error;
        dout[at] = 2.f * weight * error;
    }
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) losses[(*step - *first) * R + r] = sum;
}

// ds [R, B, D]: dout through head and last LayerNorm. sums [R, B, D + 1]: dout * xhat, and dout. most [R], where given, is raised to the largest
// number of ds.
extern "C" __global__ void head_backward(number* ds, float* most, number* sums, const number* dout, const number* xhat, const number* var,
                                         const number* params, u64 P, u64 head, u64 scale, int B) {
    int b = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    u64 at = (u64)r * B + b;
    number x[PER], g[PER], w[PER], d = dout[at];
    load(x, xhat + at * D, lane);
    load(g, params + r * P + scale, lane);
    load(w, params + r * P + head, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) w[k] = d * w[k] * g[k];
    normalise_backward(w, x, var[at]);
    if (most) raise(most + r, real ? largest_of_lane(0.f, w) : 0.f);
    if (!real) return;
    store(ds + at * D, w, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) x[k] *= d;
    store(sums + at * (D + 1), x, lane);
    if (lane == 0) sums[at * (D + 1) + D] = d;
}

// From total [R, D + 1], the sums of head_backward over strings: the gradients of head, bias, scale and shift.
extern "C" __global__ void head_gradients(number* grads, const number* total, const number* params, u64 P, u64 head, u64 bias, u64 scale,
                                          u64 shift) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c >= D) return;
    const number *own = params + r * P, *sums = total + (u64)r * (D + 1);
    number* g = grads + r * P;
    number along = sums[c], plain = sums[D];
    g[head + c] = own[scale + c] * along + own[shift + c] * plain;
    g[scale + c] = own[head + c] * along;
    g[shift + c] = own[head + c] * plain;
    if (c == 0) g[bias] = plain;
}

// From total [R, 3, D], the sums of attend_last_below over strings, into the places of scale, shift and bias.
extern "C" __global__ void below_gradients(number* grads, const number* total, u64 P, u64 scale, u64 shift, u64 bias) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c >= D) return;
    number* g = grads + r * P;
    const number* sums = total + (u64)r * 3 * D;
    g[scale + c] = sums[c];
    g[shift + c] = sums[D + c];
    g[bias + c] = sums[2 * D + c];
}
