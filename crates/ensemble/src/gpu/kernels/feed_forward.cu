// The feed-forward block reads scale * xhat + shift; both are folded into its first layer, so that only xhat is kept.

// W [R, FF, D] = W1 * scale (by column), b [R, FF] = b1 + W1 shift. bounds [R, FF], where given: what no |W xhat + b| exceeds.
extern "C" __global__ void fold(number* W, number* b, number* bounds, const number* params, u64 P, u64 W1, u64 b1, u64 scale, u64 shift) {
    int f = blockIdx.x * GROUPS + threadIdx.x / LANES, lane = threadIdx.x % LANES, r = blockIdx.y;
    bool real = f < FF;
    if (!real) f = FF - 1;
    const number* own = params + r * P;
    number w[PER], g[PER], s[PER], sum = 0.f, square = 0.f;
    load(w, own + W1 + (u64)f * D, lane);
    load(g, own + scale, lane);
    load(s, own + shift, lane);
#pragma unroll
    for (int k = 0; k < PER; k++) {
        sum += w[k] * s[k];
        w[k] *= g[k];
        square += w[k] * w[k];
    }
    sum = sum_over_group(sum);
    square = sum_over_group(square);
    if (real) {
        store(W + ((u64)r * FF + f) * D, w, lane);
        number bias = own[b1 + f] + sum;
        // No row of a LayerNorm is longer than sqrt(D).
        if (lane == 0) b[(u64)r * FF + f] = bias;
        if (lane == 0 && bounds) bounds[(u64)r * FF + f] = sqrt(square * D) + fabs(bias);
    }
}

// From the gradients of W (lying in W1's place) and b (in b1's), and of the block's output (in b2's, summed over rows), those of
// W1, scale (added to what is there) and shift.
// A block does 32 columns; its 8 warps share the rows.
extern "C" __global__ void unfold(number* grads, const number* params, u64 P, u64 W1, u64 b1, u64 scale, u64 shift, u64 b2) {
    __shared__ number sums[2][8][32];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, c = blockIdx.x * 32 + lane, r = blockIdx.y;
    const number* own = params + r * P;
    number* g = grads + r * P;
    number along = 0.f, plain = 0.f;
    if (c < D) {
        number weight = own[scale + c], offset = own[shift + c];
#pragma unroll 4
        for (int f = w; f < FF; f += 8) {
            number value = own[W1 + f * D + c], dW = g[W1 + f * D + c], db = g[b1 + f];
            along += value * dW;
            plain += value * db;
            g[W1 + f * D + c] = dW * weight + db * offset;
        }
    }
    sums[0][w][lane] = along, sums[1][w][lane] = plain;
    __syncthreads();
    if (w == 0 && c < D) {
        for (int v = 1; v < 8; v++) along += sums[0][v][lane], plain += sums[1][v][lane];
        g[scale + c] += along;
        g[shift + c] = g[b2 + c] + plain;
    }
}

// h [R, rows, FF] = max(h + b, 0)
extern "C" __global__ void bias_relu(number* __restrict__ h, const number* __restrict__ b, u64 size) {
    number* own = h + blockIdx.y * size;
    const number* bias = b + blockIdx.y * FF;
    u64 k = (u64)blockIdx.x * THREADS * 4 + threadIdx.x;
#pragma unroll
    for (int turn = 0; turn < 4; turn++, k += THREADS)
        if (k < size) own[k] = fmax(own[k] + bias[k % FF], (number)0);
}

// x [R, rows, C] += bias
extern "C" __global__ void add_bias(number* x, const number* params, u64 P, u64 bias, int rows, int C) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x, r = blockIdx.y;
    if (k < (u64)rows * C) x[r * rows * C + k] += params[r * P + bias + k % C];
}

// parts [R, chunks, C]: the sums of the columns of x [R, rows, C] over chunks of rows. With h: x is first set to 0 where h is 0.
extern "C" __global__ void column_sums(number* __restrict__ parts, number* __restrict__ x, const number* __restrict__ h, int rows, int C, int chunk) {
    __shared__ number sums[THREADS];
    int width = min(THREADS, C), lanes = THREADS / width, lane = threadIdx.x / width, r = blockIdx.y;
    u64 first = (u64)blockIdx.x * chunk, end = min((u64)rows, first + chunk);
    for (int from = 0; from < C; from += width) {
        int c = from + threadIdx.x % width;
        number sum = 0.f;
        if (lane < lanes && c < C)
#pragma unroll 4
            for (u64 row = first + lane; row < end; row += lanes) {
                u64 at = ((u64)r * rows + row) * C + c;
                number v = x[at];
                if (h) x[at] = v = h[at] > 0.f ? v : 0.f;
                sum += v;
            }
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (lane == 0 && c < C) {
            for (int k = 1; k < lanes; k++) sum += sums[k * width + threadIdx.x];
            parts[((u64)r * gridDim.x + blockIdx.x) * C + c] = sum;
        }
        __syncthreads();
    }
}

// out [R, size] at out + r * stride: the sum of parts [R, count, size], added in order.
extern "C" __global__ void add_parts(number* __restrict__ out, u64 stride, const number* __restrict__ parts, int count, u64 size) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x, r = blockIdx.y;
    if (k >= size) return;
    number sum = 0.f;
#pragma unroll 4
    for (int part = 0; part < count; part++) sum += parts[(r * count + part) * size + k];
    out[r * stride + k] = sum;
}
