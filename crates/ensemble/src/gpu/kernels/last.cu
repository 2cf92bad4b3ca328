// What stands above the last layer, and the gradients that come from there.

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

// ds [R, B, D]: dout through head and last LayerNorm. sums [R, B, D + 1]: dout * xhat, and dout.
extern "C" __global__ void head_backward(number* ds, number* sums, const number* dout, const number* xhat, const number* var,
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
