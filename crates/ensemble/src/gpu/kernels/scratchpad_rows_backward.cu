// The way back through what is done to each row by itself. A warp has 32 rows at a time.
//
// Gradients are those of the sum of squared errors, not of their mean: halves have no digits left for the latter. gather_gradients divides.

// What a kernel of the way back needs: its lane and replica, and its block's part of the gradients.
#define BACKWARD                                                     \
    extern __shared__ __align__(128) unsigned char memory[];         \
    int lane = threadIdx.x % 32, r = blockIdx.y;                     \
    uint4 *shown = (uint4*)memory + threadIdx.x / 32 * 2 * 32 * D / 4, *room = shown + 32 * D / 4; \
    const float* own = params + r * P;                               \
    parts += ((u64)r * gridDim.x + blockIdx.x) * P;

// From outputs, through the head and the norm before it: dx, and each block's part of the loss [R, blocks].
extern "C" __global__ void read_out_backward(float* dx, float* parts, double* losses, const float* out, const float* labels, const float* xhat,
                                             const float* var, const float* params, u64 P, u64 norm, u64 head, u64 rows, u64 tiles) {
    BACKWARD
    __shared__ float norms[2 * D], weights[D], bias[WARPS];
    stage(norms, own + norm, 2 * D);
    stage(weights, own + head, D);
    __syncthreads();
    double loss = 0.;
    float errors = 0.f;
    Columns of_head = {};
    NormSums sums = {};
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
                if (lane % 4 == 0) loss += (double)error * error, errors += 2.f * error;
            }
        Part g, x;
        load_part(x, xhat + at, lane);
        EACH_NUMBER {
            int c = 8 * k + 2 * (lane % 4) + e % 2;
            g[m][k][e] = gradient[m][e / 2] * weights[c];
            of_head[k][e % 2] += gradient[m][e / 2] * (x[m][k][e] * norms[c] + norms[D + c]);
        }
        add_norm(sums, g, x);
        norm_backward(g, x, var + r * rows, norms, tile * 32, rows, lane);
        store_part(dx + at, g, lane);
    }
    store_norm(parts + norm, sums, (float*)memory);
    store_columns(parts + head, of_head, (float*)memory);
    errors = sum_over_warp(errors);
    if (lane == 0) bias[threadIdx.x / 32] = errors;
    loss = sum_over_block(loss);
    if (threadIdx.x > 0) return;
    losses[r * gridDim.x + blockIdx.x] = loss;
    float sum = 0.f;
    for (int warp = 0; warp < WARPS; warp++) sum += bias[warp];
    parts[head + D] = sum;
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
extern "C" __global__ void norm_rows_backward(float* dx, float* parts, const float* dy, const float* xhat, const float* var, const float* params,
                                              u64 P, u64 norm, u64 rows, u64 tiles) {
    BACKWARD
    NormSums sums = {};
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g, x;
        load_part(g, dy + at, lane);
        load_part(x, xhat + at, lane);
        add_norm(sums, g, x);
        norm_backward(g, x, var + r * rows, own + norm, tile * 32, rows, lane);
        store_part(dx + at, g, lane);
    }
    store_norm(parts + norm, sums, (float*)memory);
}

// dx: through a norm and the feed-forward layer before it, which read x.
extern "C" __global__ void __launch_bounds__(256) norm_fed_forward_backward(float* dx, float* parts, const float* dy, const float* xhat,
                                                                            const float* var, const float* hidden, const float* x,
                                                                            const float* params, u64 P, u64 norm, u64 layers, u64 x_norm,
                                                                            u64 rows, u64 tiles) {
    BACKWARD
    __shared__ __align__(16) u32 lines[2][D * LINE];
    __shared__ float scale[D], before[2 * D];
    stage_columns(lines[0], own + layers);
    stage_columns(lines[1], own + layers + D * D + D);
    stage(scale, own + norm, D);
    stage(before, own + x_norm, 2 * D);
    __syncthreads();
    NormSums sums = {};
    LayerSums first = {}, second = {};
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g, read, dh = {};
        load_part(g, dy + at, lane);
        load_part(read, xhat + at, lane);
        add_norm(sums, g, read);
        norm_backward(g, read, var + r * rows, scale, tile * 32, rows, lane);
        add_product(dh, g, lines[1], lane);
        load_part(read, hidden + at, lane);
        EACH_NUMBER dh[m][k][e] = read[m][k][e] > 0.f ? dh[m][k][e] : 0.f;
        show_rows(shown, read, lane);
        add_layer(second, g, shown, room, lane);
        add_product(g, dh, lines[0], lane);
        store_part(dx + at, g, lane);
        load_part(read, x + at, lane);
        scale_and_shift(read, before, lane);
        show_rows(shown, read, lane);
        add_layer(first, dh, shown, room, lane);
    }
    store_norm(parts + norm, sums, (float*)memory);
    store_layer(parts + layers, parts + layers + D * D, first, (float*)memory);
    store_layer(parts + layers + D * D + D, parts + layers + 2 * D * D + D, second, (float*)memory);
}

// Through a norm and the attention's out-projection before it: dsum, of the norm's input; dattended; its product with what was attended to
// [R, B, heads, n]; and the largest of dattended [R], as bits.
extern "C" __global__ void __launch_bounds__(256) norm_attended_backward(float* dsum, float* dattended, float* products, u32* largest, float* parts,
                                                                         const float* dy, const float* xhat, const float* var,
                                                                         const float* attended, const float* params, u64 P, u64 norm,
                                                                         u64 projection, int n, u64 rows, u64 tiles) {
    BACKWARD
    __shared__ __align__(16) u32 lines[D * LINE];
    __shared__ float scale[D];
    stage_columns(lines, own + projection);
    stage(scale, own + norm, D);
    __syncthreads();
    u32 most = 0;
    u64 strings = rows / n;
    NormSums sums = {};
    LayerSums out = {};
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g, read, o = {};
        load_part(g, dy + at, lane);
        load_part(read, xhat + at, lane);
        add_norm(sums, g, read);
        norm_backward(g, read, var + r * rows, scale, tile * 32, rows, lane);
        store_part(dsum + at, g, lane);
        add_product(o, g, lines, lane);
        store_part(dattended + at, o, lane);
        load_part(read, attended + at, lane);
        show_rows(shown, read, lane);
        add_layer(out, g, shown, room, lane);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            float along[2][2] = {};
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int k = 2 * h; k < 2 * h + 2; k++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        along[m][e / 2] += o[m][k][e] * read[m][k][e];
                        most = max(most, __float_as_uint(fabsf(o[m][k][e])));
                    }
            finish_sums(along);
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    u32 row = tile * 32 + 16 * m + lane / 4 + 8 * half, b = row / n;
                    if (lane % 4 == 0 && row < rows) products[((r * strings + b) * HEADS + h) * n + row - b * n] = along[m][half];
                }
        }
    }
    most = __reduce_max_sync(0xffffffffu, most);
    if (lane == 0) atomicMax(largest + r, most);
    store_norm(parts + norm, sums, (float*)memory);
    store_layer(parts + projection, parts + projection + D * D, out, (float*)memory);
}

// dx: through an in-projection, which read x, from queries, keys and values, those there are, plus what else there is.
extern "C" __global__ void __launch_bounds__(256) project_rows_backward(float* dx, float* parts, const float* dqueries, const float* dkeys,
                                                                        const float* dvalues, const float* plus, const float* x,
                                                                        const float* params, u64 P, u64 x_norm, u64 projection, u64 rows,
                                                                        u64 tiles) {
    BACKWARD
    __shared__ __align__(16) u32 lines[3][D * LINE];
    __shared__ float before[2 * D];
    const float* from[3] = {dqueries, dkeys, dvalues};
#pragma unroll
    for (int part = 0; part < 3; part++)
        if (from[part]) stage_columns(lines[part], own + projection + part * D * D);
    if (x_norm != NO_NORM) stage(before, own + x_norm, 2 * D);
    __syncthreads();
    LayerSums sums[3] = {};
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part g = {}, d;
        load_part(d, x + at, lane);
        if (x_norm != NO_NORM) scale_and_shift(d, before, lane);
        show_rows(shown, d, lane);
        if (plus) load_part(g, plus + at, lane);
#pragma unroll
        for (int part = 0; part < 3; part++)
            if (from[part]) {
                load_part(d, from[part] + at, lane);
                add_product(g, d, lines[part], lane);
                add_layer(sums[part], d, shown, room, lane);
            }
        store_part(dx + at, g, lane);
    }
    // The gradient of keys' bias is 0, since it cancels in the softmax; rounding would make noise of it, which AdamW turns into full steps.
#pragma unroll
    for (int c = 0; c < 8; c++) sums[1].bias[c / 2][c % 2] = 0.f;
#pragma unroll
    for (int part = 0; part < 3; part++)
        if (from[part])
            store_layer(parts + projection + part * D * D, parts + projection + 3 * D * D + part * D, sums[part], (float*)memory);
}

// Of embeddings: of each position, and each position's part [R, 3, width, n] of those of tokens. A warp has two columns of 32 positions.
extern "C" __global__ void embed_rows_backward(float* grads, float* parts, const float* dx, const u8* tokens, u64 P, u64 position, int n, int B,
                                               u64 tiles, int sets, float share) {
    int i = blockIdx.x * 32 + threadIdx.x % 32, c = 2 * (threadIdx.x / 32 + blockIdx.z * WARPS), r = blockIdx.y;
    if (i >= n) return;
    float sums[3][2] = {};
#pragma unroll 8
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
