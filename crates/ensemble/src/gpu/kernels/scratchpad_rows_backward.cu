// The way back through what is done to each row by itself. A thread has a row.
//
// Gradients are those of the sum of squared errors, not of their mean: halves have no digits left for the latter. gather_gradients divides.

// From outputs: dout [R, rows, D], the gradient in column 0 and 0 in the others, which weight_gradients reads; dy, that of the last norm's output; and
// each block's part of the loss [R, blocks].
extern "C" __global__ void read_out_backward(float* dout, float* dy, double* parts, const float* out, const float* labels, const float* params,
                                             u64 P, u64 head, u64 rows, u64 tiles) {
    int r = blockIdx.y;
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    float error = row < rows ? out[r * rows + row] - labels[r * rows + row] : 0.f;
    double sum = sum_over_block((double)error * error);
    if (threadIdx.x == 0) parts[r * gridDim.x + blockIdx.x] = sum;
    if (row >= rows) return;
    u64 at = r * tiles * 32 * D + place_of(row);
    float gradient = 2.f * error;
    dout[at] = gradient;
#pragma unroll
    for (int c = 0; c < D; c++) dy[at + 32 * c] = gradient * params[r * P + head + c];
}

// The mean squared error from its parts [R, parts], noted at losses[*step - *first][r].
extern "C" __global__ void note_loss(double* losses, const double* parts, const u64* step, const u64* first, int count, u64 rows, int R) {
    int r = blockIdx.y;
    double sum = 0.;
    for (int k = threadIdx.x; k < count; k += THREADS) sum += parts[(u64)r * count + k];
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) losses[(*step - *first) * R + r] = sum / rows;
}

// dx: through a norm, from dy.
extern "C" __global__ void norm_rows_backward(float* dx, const float* dy, const float* xhat, const float* var, const float* params, u64 P,
                                              u64 norm, u64 rows, u64 tiles) {
    int r = blockIdx.y;
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u64 at = r * tiles * 32 * D + place_of(row);
    float g[D];
    load_row(g, dy + at);
    norm_backward(g, xhat + at, var[r * rows + row], params + r * P + norm);
    store_row(dx + at, g);
}

// Through a norm and the feed-forward layer before it: dsum, of the norm's input; dhidden, before the ReLU; dx, of what the layer reads.
extern "C" __global__ void norm_fed_forward_backward(float* dx, float* dsum, float* dhidden, const float* dy, const float* xhat, const float* var,
                                                     const float* hidden, const float* params, u64 P, u64 norm, u64 layers, u64 rows,
                                                     u64 tiles) {
    __shared__ __align__(16) float weights[2 * (D * D + D)];
    int r = blockIdx.y;
    stage(weights, params + r * P + layers, 2 * (D * D + D));
    __syncthreads();
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u64 at = r * tiles * 32 * D + place_of(row);
    float g[D], dh[D] = {};
    load_row(g, dy + at);
    norm_backward(g, xhat + at, var[r * rows + row], params + r * P + norm);
    store_row(dsum + at, g);
    linear_backward(dh, g, weights + D * D + D);
#pragma unroll
    for (int c = 0; c < D; c++) dh[c] = hidden[at + 32 * c] > 0.f ? dh[c] : 0.f;
    store_row(dhidden + at, dh);
    linear_backward(g, dh, weights);
    store_row(dx + at, g);
}

// Through a norm and the attention's out-projection before it: dsum, of the norm's input; dattended; its product with what was attended to
// [R, B, heads, n]; and the largest of dattended [R], as bits.
extern "C" __global__ void norm_attended_backward(float* dsum, float* dattended, float* products, u32* largest, const float* dy,
                                                  const float* xhat, const float* var, const float* attended, const float* params, u64 P,
                                                  u64 norm, u64 projection, int n, u64 rows, u64 tiles) {
    __shared__ __align__(16) float weight[D * D];
    int r = blockIdx.y;
    stage(weight, params + r * P + projection, D * D);
    __syncthreads();
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    u32 most = 0;
    if (row < rows) {
        u64 at = r * tiles * 32 * D + place_of(row);
        float g[D], o[D] = {};
        load_row(g, dy + at);
        norm_backward(g, xhat + at, var[r * rows + row], params + r * P + norm);
        store_row(dsum + at, g);
        linear_backward(o, g, weight);
        store_row(dattended + at, o);
        u64 string = r * (rows / n) + row / n, i = row % n;
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            float product = 0.f;
#pragma unroll
            for (int c = h * HEAD; c < (h + 1) * HEAD; c++) {
                product += o[c] * attended[at + 32 * c];
                most = max(most, __float_as_uint(fabsf(o[c])));
            }
            products[(string * HEADS + h) * n + i] = product;
        }
    }
    most = __reduce_max_sync(0xffffffffu, most);
    if (threadIdx.x % 32 == 0) atomicMax(largest + r, most);
}

// dx: through an in-projection from queries, keys and values, those there are, plus what else there is.
extern "C" __global__ void project_rows_backward(float* dx, const float* dqueries, const float* dkeys, const float* dvalues, const float* plus,
                                                 const float* params, u64 P, u64 projection, u64 rows, u64 tiles) {
    __shared__ __align__(16) float weight[3 * D * D];
    int r = blockIdx.y;
    stage(weight, params + r * P + projection, 3 * D * D);
    __syncthreads();
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u64 at = r * tiles * 32 * D + place_of(row);
    float g[D] = {}, d[D];
    if (plus) load_row(g, plus + at);
    const float* from[3] = {dqueries, dkeys, dvalues};
#pragma unroll
    for (int part = 0; part < 3; part++)
        if (from[part]) {
            load_row(d, from[part] + at);
            linear_backward(g, d, weight + part * D * D);
        }
    store_row(dx + at, g);
}

// Of embeddings: of each position, and each position's part [R, 3, width, n] of those of tokens. A warp has a column of 32 positions.
extern "C" __global__ void embed_rows_backward(float* grads, float* parts, const float* dx, const u8* tokens, u64 P, u64 position, int n, int B,
                                               u64 tiles, int sets, float share) {
    int i = blockIdx.x * 32 + threadIdx.x % 32, c = threadIdx.x / 32 + blockIdx.z * (THREADS / 32), r = blockIdx.y;
    if (i >= n) return;
    float sums[3] = {};
    for (int b = 0; b < B; b++) {
        u64 row = (u64)b * n + i;
        float v = dx[r * tiles * 32 * D + place_of(row) + 32 * c];
        u8 token = tokens[(u64)(r % sets) * B * n + row];
#pragma unroll
        for (int k = 0; k < 3; k++) sums[k] += token == k ? v : 0.f;
    }
    int width = CONCAT ? D / 2 : D;
    if (!CONCAT || c < D / 2)
#pragma unroll
        for (int k = 0; k < 3; k++) parts[((u64)(r * 3 + k) * width + c) * n + i] = sums[k] * share;
    if (!CONCAT || c >= D / 2) grads[r * P + position + i * width + (CONCAT ? c - D / 2 : c)] = (sums[0] + sums[1] + sums[2]) * share;
}

// Of tokens, from the positions' parts. A warp has a number.
extern "C" __global__ void token_gradients(float* grads, const float* parts, u64 P, u64 token, int n, int vocabulary) {
    int width = CONCAT ? D / 2 : D, k = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    if (k >= vocabulary * width) return;
    float sum = 0.f;
    for (int i = lane; i < n; i += 32) sum += parts[((u64)r * 3 * width + k) * n + i];
    sum = sum_over_warp(sum);
    if (lane == 0) grads[r * P + token + k] = sum;
}
