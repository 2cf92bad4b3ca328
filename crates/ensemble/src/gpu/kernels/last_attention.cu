// The last layer, read at one position: with y = scale * xhat + shift the layer below's output, the query is folded into
// u = Wk^T q / sqrt(dh), the mix c = sum_j p_j y_j goes through Wv afterwards. Shift drops out of the softmax.

// What the layer below's xhat is kept as, and how rows are read and written: in order, or as last_halves.cu says.
#ifndef ROWS_ARE_HALVES
typedef number kept_number;
__device__ __forceinline__ number number_at(const number* row, int c) {
    return row[c];
}
__device__ __forceinline__ void load_row(number* v, const number* row, int lane) {
    load(v, row, lane);
}
__device__ __forceinline__ void store_row(number* row, const number* v, int lane) {
    store(row, v, lane);
}
#endif

// Raises a number in memory to the largest of a warp's, none of which is negative: such floats are in order as integers, too.
__device__ __forceinline__ void raise(float* most, number own) {
    own = max_over_warp(own);
    if (threadIdx.x % 32 == 0 && (float)own > *(volatile float*)most) atomicMax((int*)most, __float_as_int((float)own));
}

// The largest of a lane's numbers, whatever their sign, and of `most`.
__device__ __forceinline__ number largest_of_lane(number most, const number* v) {
#pragma unroll
    for (int k = 0; k < PER; k++) most = fmax(most, fabs(v[k]));
    return most;
}

// out [R, rows, D] = scale * xhat + shift of every `stride`-th row of xhat [R, rows * stride, D], from row `first` on.
extern "C" __global__ void scale_shift(number* out, const kept_number* xhat, const number* params, u64 P, u64 scale, u64 shift, int rows,
                                       int stride, int first) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x, r = blockIdx.y;
    if (k >= (u64)rows * D) return;
    int c = k % D;
    u64 row = k / D * stride + first;
    const number* own = params + r * P;
    out[r * rows * D + k] = number_at(xhat + (r * rows * stride + row) * D, c) * own[scale + c] + own[shift + c];
}

// u [R, B, HEADS, D] -> p [R, B, HEADS, n], mean [R, B, HEADS, D] = sum_j p_j xhat_j, and c = scale * mean + shift. One pass over
// xhat [R, B, n, D] by the running softmax.
extern "C" __global__ void attend_last(number* __restrict__ p, number* __restrict__ mean, number* __restrict__ c_out, const number* __restrict__ u, const kept_number* __restrict__ xhat, const number* __restrict__ params,
                                       u64 P, u64 scale, u64 shift, int B, int n) {
    int b = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    u64 string = (u64)r * B + b;
    number weight[PER], offset[PER], query[HEADS][PER], mix[HEADS][PER], largest[HEADS], sum[HEADS];
    load_row(weight, params + r * P + scale, lane);
    load_row(offset, params + r * P + shift, lane);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        load_row(query[h], u + (string * HEADS + h) * D, lane);
        largest[h] = -3.4e38f, sum[h] = 0.f;
#pragma unroll
        for (int k = 0; k < PER; k++) query[h][k] *= weight[k], mix[h][k] = 0.f;
    }
#pragma unroll 4
    for (int j = 0; j < n; j++) {
        number x[PER];
        load_row(x, xhat + (string * n + j) * D, lane);
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
        store_row(mean + at * D, mix[h], lane);
#pragma unroll
        for (int k = 0; k < PER; k++) mix[h][k] = mix[h][k] * weight[k] + offset[k];
        store_row(c_out + at * D, mix[h], lane);
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
                         const number* __restrict__ u, const number* __restrict__ p, const number* __restrict__ means, const kept_number* __restrict__ xhat,
                         const number* __restrict__ var, const number* __restrict__ params, u64 P, u64 scale, int B, int n, int near) {
    extern __shared__ __align__(16) u8 memory[]; // [groups, n, D] of xhat
    int groups = blockDim.x / LANES, group = threadIdx.x / LANES, b = blockIdx.x * groups + group, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    u64 string = (u64)r * B + b;
    const kept_number* rows = xhat + string * n * D;
#if __CUDA_ARCH__ >= 800
    if (near) {
        u8* own = memory + group * n * D * sizeof(kept_number);
        for (int k = lane * 16; k < n * D * (int)sizeof(kept_number); k += LANES * 16)
            copy_16_bytes(shared_address(own + k), (const u8*)rows + k);
        wait_for_copies();
        __syncwarp();
        rows = (const kept_number*)own;
    }
#endif
    number weight[PER], out[HEADS][PER], sum[HEADS][PER], dots[HEADS], dscale[PER] = {}, dshift[PER] = {}, column[PER] = {};
    load_row(weight, params + r * P + scale, lane);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        load_row(out[h], dc + (string * HEADS + h) * D, lane);
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
        load_row(x, rows + j * D, lane);
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
        load_row(m, means + at, lane);
        load_row(c, dc + at, lane);
        load_row(query[h], u + at, lane);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            sum[h][k] -= dots[h] * m[k];
            dscale[k] += query[h][k] * sum[h][k] + c[k] * m[k];
            sum[h][k] *= weight[k];
            query[h][k] *= weight[k];
        }
        if (real) store_row(du + at, sum[h], lane);
        mean_out[h] = mean_query[h] = 0.f;
#pragma unroll
        for (int k = 0; k < PER; k++) mean_out[h] += out[h][k], mean_query[h] += query[h][k];
        mean_out[h] = sum_over_group(mean_out[h]) / D, mean_query[h] = sum_over_group(mean_query[h]) / D;
    }
#pragma unroll 2
    for (int j = 0; j < n; j++) {
        u64 at = string * n + j;
        number x[PER], g[PER] = {}, mean = 0.f, along = 0.f, factor = 1.f / sqrt(var[at] + EPS);
        load_row(x, rows + j * D, lane);
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
        if (real) store_row(ds + at * D, g, lane);
#pragma unroll
        for (int k = 0; k < PER; k++) column[k] += g[k];
        if (real) largest = largest_of_lane(largest, g);
    }
    if (most) raise(most + r, largest);
    if (!real) return;
    store_row(sums + (string * 3 + 0) * D, dscale, lane);
    store_row(sums + (string * 3 + 1) * D, dshift, lane);
    store_row(sums + (string * 3 + 2) * D, column, lane);
}

// Adds to ds, most and sums of attend_last_backward what reaches the last position of the layer below directly: dlast [R, B, D].
extern "C" __global__ void attend_last_direct(number* __restrict__ ds, float* most, number* __restrict__ sums, const number* __restrict__ dlast, const kept_number* __restrict__ xhat,
                                              const number* __restrict__ var, const number* __restrict__ params, u64 P, u64 scale, int B, int n) {
    int b = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = b < B;
    if (!real) b = B - 1;
    u64 string = (u64)r * B + b, at = string * n + n - 1;
    number weight[PER], g[PER], x[PER], three[3][PER], old[PER];
    load_row(weight, params + r * P + scale, lane);
    load_row(g, dlast + string * D, lane);
    load_row(x, xhat + at * D, lane);
    load_row(old, ds + at * D, lane);
#pragma unroll
    for (int k = 0; k < 3; k++) load_row(three[k], sums + (string * 3 + k) * D, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) three[0][k] += g[k] * x[k], three[1][k] += g[k], g[k] *= weight[k];
    normalise_backward(g, x, var[at]);
#pragma unroll
    for (int k = 0; k < PER; k++) old[k] += g[k], three[2][k] += g[k];
    if (most) raise(most + r, real ? largest_of_lane(0.f, old) : 0.f);
    if (!real) return;
    store_row(ds + at * D, old, lane);
#pragma unroll
    for (int k = 0; k < 3; k++) store_row(sums + (string * 3 + k) * D, three[k], lane);
}
