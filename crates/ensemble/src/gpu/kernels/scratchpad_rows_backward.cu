// The way back through what is done to each row by itself. A warp has 32 rows at a time.
//
// Gradients are those of the sum of squared errors, not of their mean: halves have no digits left for the latter. gather_gradients divides.

// From outputs: dout [R, rows, D], the gradient in column 0 (the others stay 0), which weight_gradients reads; dy, that of the last norm's output; and
// each block's part of the loss [R, blocks].
extern "C" __global__ void read_out_backward(float* dout, float* dy, double* parts, const float* out, const float* labels, const float* params,
                                             u64 P, u64 head, u64 rows, u64 tiles) {
    int lane = threadIdx.x % 32, r = blockIdx.y;
    double sum = 0.;
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        float gradient[2][2];
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                u64 row = tile * 32 + 16 * m + lane / 4 + 8 * half;
                float error = row < rows ? out[r * rows + row] - labels[r * rows + row] : 0.f;
                gradient[m][half] = 2.f * error;
                if (lane % 4 == 0) sum += (double)error * error;
            }
        Part g;
        EACH_NUMBER g[m][k][e] = gradient[m][e / 2] * params[r * P + head + 8 * k + 2 * (lane % 4) + e % 2];
        store_part(dy + at, g, lane);
        if (lane % 4 == 0)
#pragma unroll
            for (int m = 0; m < 2; m++) ((float4*)(dout + at))[m * 4 * 32 + lane] = make_float4(gradient[m][0], 0.f, gradient[m][1], 0.f);
    }
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) parts[r * gridDim.x + blockIdx.x] = sum;
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
    int lane = threadIdx.x % 32, r = blockIdx.y;
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g;
        load_part(g, dy + at, lane);
        norm_backward(g, xhat + at, var + r * rows, params + r * P + norm, tile * 32, rows, lane);
        store_part(dx + at, g, lane);
    }
}

// Through a norm and the feed-forward layer before it: dsum, of the norm's input; dhidden, before the ReLU; dx, of what the layer reads.
extern "C" __global__ void norm_fed_forward_backward(float* dx, float* dsum, float* dhidden, const float* dy, const float* xhat, const float* var,
                                                     const float* hidden, const float* params, u64 P, u64 norm, u64 layers, u64 rows,
                                                     u64 tiles) {
    __shared__ __align__(16) u32 lines[2][D * LINE];
    __shared__ float scale[D];
    int lane = threadIdx.x % 32, r = blockIdx.y;
    const float* own = params + r * P;
    stage_columns(lines[0], own + layers);
    stage_columns(lines[1], own + layers + D * D + D);
    stage(scale, own + norm, D);
    __syncthreads();
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g, h, dh = {};
        load_part(g, dy + at, lane);
        norm_backward(g, xhat + at, var + r * rows, scale, tile * 32, rows, lane);
        store_part(dsum + at, g, lane);
        add_product(dh, g, lines[1], lane);
        load_part(h, hidden + at, lane);
        EACH_NUMBER dh[m][k][e] = h[m][k][e] > 0.f ? dh[m][k][e] : 0.f;
        store_part(dhidden + at, dh, lane);
        add_product(g, dh, lines[0], lane);
        store_part(dx + at, g, lane);
    }
}

// Through a norm and the attention's out-projection before it: dsum, of the norm's input; dattended; its product with what was attended to
// [R, B, heads, n]; and the largest of dattended [R], as bits.
extern "C" __global__ void norm_attended_backward(float* dsum, float* dattended, float* products, u32* largest, const float* dy,
                                                  const float* xhat, const float* var, const float* attended, const float* params, u64 P,
                                                  u64 norm, u64 projection, int n, u64 rows, u64 tiles) {
    __shared__ __align__(16) u32 lines[D * LINE];
    __shared__ float scale[D];
    int lane = threadIdx.x % 32, r = blockIdx.y;
    const float* own = params + r * P;
    stage_columns(lines, own + projection);
    stage(scale, own + norm, D);
    __syncthreads();
    u32 most = 0;
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g, o = {};
        load_part(g, dy + at, lane);
        norm_backward(g, xhat + at, var + r * rows, scale, tile * 32, rows, lane);
        store_part(dsum + at, g, lane);
        add_product(o, g, lines, lane);
        store_part(dattended + at, o, lane);
        load_part(g, attended + at, lane);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            float sums[2][2] = {};
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int k = 2 * h; k < 2 * h + 2; k++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        sums[m][e / 2] += o[m][k][e] * g[m][k][e];
                        most = max(most, __float_as_uint(fabsf(o[m][k][e])));
                    }
            finish_sums(sums);
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    u64 row = tile * 32 + 16 * m + lane / 4 + 8 * half;
                    if (lane % 4 == 0 && row < rows) products[((r * (rows / n) + row / n) * HEADS + h) * n + row % n] = sums[m][half];
                }
        }
    }
    most = __reduce_max_sync(0xffffffffu, most);
    if (lane == 0) atomicMax(largest + r, most);
}

// dx: through an in-projection from queries, keys and values, those there are, plus what else there is.
extern "C" __global__ void project_rows_backward(float* dx, const float* dqueries, const float* dkeys, const float* dvalues, const float* plus,
                                                 const float* params, u64 P, u64 projection, u64 rows, u64 tiles) {
    __shared__ __align__(16) u32 lines[3][D * LINE];
    int lane = threadIdx.x % 32, r = blockIdx.y;
    const float* from[3] = {dqueries, dkeys, dvalues};
#pragma unroll
    for (int part = 0; part < 3; part++)
        if (from[part]) stage_columns(lines[part], params + r * P + projection + part * D * D);
    __syncthreads();
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g = {}, d;
        if (plus) load_part(g, plus + at, lane);
#pragma unroll
        for (int part = 0; part < 3; part++)
            if (from[part]) {
                load_part(d, from[part] + at, lane);
                add_product(g, d, lines[part], lane);
            }
        store_part(dx + at, g, lane);
    }
}

// Of embeddings: of each position, and each position's part [R, 3, width, n] of those of tokens. A warp has two columns of 32 positions.
extern "C" __global__ void embed_rows_backward(float* grads, float* parts, const float* dx, const u8* tokens, u64 P, u64 position, int n, int B,
                                               u64 tiles, int sets, float share) {
    int i = blockIdx.x * 32 + threadIdx.x % 32, c = 2 * (threadIdx.x / 32 + blockIdx.z * WARPS), r = blockIdx.y;
    if (i >= n) return;
    float sums[3][2] = {};
    for (int b = 0; b < B; b++) {
        u64 row = (u64)b * n + i;
        float2 v = *(const float2*)(dx + r * tiles * 32 * D + place_of(row, c));
        u8 token = tokens[(u64)(r % sets) * B * n + row];
#pragma unroll
        for (int k = 0; k < 3; k++) sums[k][0] += token == k ? v.x : 0.f, sums[k][1] += token == k ? v.y : 0.f;
    }
    int width = CONCAT ? D / 2 : D;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        if (!CONCAT || c < D / 2)
#pragma unroll
            for (int k = 0; k < 3; k++) parts[((u64)(r * 3 + k) * width + c + e) * n + i] = sums[k][e] * share;
        if (!CONCAT || c >= D / 2)
            grads[r * P + position + i * width + (CONCAT ? c - D / 2 : c) + e] = (sums[0][e] + sums[1][e] + sums[2][e]) * share;
    }
}

// Of tokens, from the positions' parts. A warp has a number.
extern "C" __global__ void token_gradients(float* grads, const float* parts, u64 P, u64 token, int n, int vocabulary) {
    int width = CONCAT ? D / 2 : D, k = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    if (k >= vocabulary * width) return;
    float sum = 0.f;
    for (int i = lane; i < n; i += 32) sum += parts[((u64)r * 3 * width + k) * n + i];
    sum = sum_over_warp(sum);
    if (lane == 0) grads[r * P + token + k] = sum;
}
