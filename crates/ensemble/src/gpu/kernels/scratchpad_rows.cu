// What is done to each row by itself, from strings to outputs. A warp has 32 rows at a time.

// Scores are kept in powers of two: exp(q k / 4) = 2^(q' k)
#define QUERY_SCALE (0.25f * 1.44269504088896341f)

// Of bits [sets, B, n]: labels [R, B, n], the parity up to each position, and inputs [R, B, n], what the decoder reads there: the label before it,
// 2 at the start. A warp has a string.
extern "C" __global__ void prefix_parities(float* labels, u8* inputs, const u8* bits, int B, int n, int sets) {
    int b = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    if (b >= B) return;
    const u8* x = bits + ((u64)(r % sets) * B + b) * n;
    u64 at = ((u64)r * B + b) * n;
    u32 before = 0;
    for (int first = 0; first < n; first += 32) {
        int i = first + lane;
        u32 ones = __ballot_sync(0xffffffffu, i < n && x[i]);
        u32 parity = (__popc(ones & (0xffffffffu >> (31 - lane))) + before) & 1;
        if (i < n) labels[at + i] = parity;
        if (i + 1 < n) inputs[at + i + 1] = parity;
        before += __popc(ones);
    }
    if (lane == 0) inputs[at] = 2;
}

// x [R, rows, D]: embeddings of tokens [sets, B, n].
extern "C" __global__ void embed_rows(float* x, const u8* tokens, const float* params, u64 P, u64 token, u64 position, int n, int sets, u64 rows,
                                      u64 tiles) {
    int lane = threadIdx.x % 32, r = blockIdx.y, width = CONCAT ? D / 2 : D;
    const float* own = params + r * P;
    EACH_TILE {
        Part v;
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                u64 row = tile * 32 + 16 * m + lane / 4 + 8 * half;
                bool there = row < rows;
                const float* of_token = own + token + (there ? tokens[(r % sets) * rows + row] : 0) * width;
                const float* of_position = own + position + row % n * width;
#pragma unroll
                for (int k = 0; k < 4; k++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        int c = 8 * k + 2 * (lane % 4) + e;
                        float sum = CONCAT ? (k < 2 ? of_token[c] : of_position[c - D / 2]) : of_token[c] + of_position[c];
                        v[m][k][2 * half + e] = there ? sum : 0.f;
                    }
            }
        store_part(x + (r * tiles + tile) * 32 * D, v, lane);
    }
}

// Of the 16 columns of a head, the one that a product has at column c of 16, so that a lane gets four in a row: lane t columns 4 t .. 4 t + 3.
__device__ __forceinline__ int column_of(int c) { return c % 8 / 2 * 4 + c / 8 * 2 + c % 2; }

// Queries, keys and values, as halves [R, B, heads, n, HEAD] each, of in-projection [3 D, D]; those that have no place are left out.
extern "C" __global__ void project_rows(u16* queries, u16* keys, u16* values, const float* x, const float* params, u64 P, u64 norm,
                                        u64 projection, int n, u64 rows, u64 tiles) {
    __shared__ __align__(16) u32 lines[3 * D * LINE];
    __shared__ float bias[3 * D], scales[2 * D];
    int lane = threadIdx.x % 32, r = blockIdx.y;
    u64 strings = rows / n;
    const float* own = params + r * P;
    u16* outs[3] = {queries, keys, values};
    for (int o = threadIdx.x / 32; o < 3 * D; o += WARPS) {
        int from = o / HEAD * HEAD + column_of(o % HEAD);
        if (o < D ? queries : o < 2 * D ? keys : values) lines[o * LINE + lane] = tf32(own[projection + from * D + lane]);
        if (lane == 0) bias[o] = own[projection + 3 * D * D + from];
    }
    if (norm != NO_NORM) stage(scales, own + norm, 2 * D);
    __syncthreads();
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part v, y;
        load_part(v, x + at, lane);
        if (norm != NO_NORM) scale_and_shift(v, scales, lane);
#pragma unroll
        for (int part = 0; part < 3; part++) {
            if (!outs[part]) continue;
            begin_with(y, bias + part * D, lane);
            add_product(y, v, lines + part * D * LINE, lane);
            float by = part == 0 ? QUERY_SCALE : 1.f;
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    u32 row = tile * 32 + 16 * m + lane / 4 + 8 * half, b = row / n;
                    if (row >= rows) continue;
                    u64 string = r * strings + b;
#pragma unroll
                    for (int h = 0; h < HEADS; h++) {
                        float(&low)[4] = y[m][2 * h], (&high)[4] = y[m][2 * h + 1];
                        uint2 four = make_uint2(halves(low[2 * half] * by, low[2 * half + 1] * by), halves(high[2 * half] * by, high[2 * half + 1] * by));
                        *(uint2*)(outs[part] + ((string * HEADS + h) * n + row - b * n) * HEAD + 4 * (lane % 4)) = four;
                    }
                }
        }
    }
}

// xhat, var: the norm of x plus what was attended to, through the out-projection.
extern "C" __global__ void norm_attended(float* xhat, float* var, const float* attended, const float* x, const float* params, u64 P,
                                         u64 x_norm, u64 projection, u64 rows, u64 tiles) {
    __shared__ __align__(16) u32 lines[D * LINE];
    __shared__ float bias[D], scales[2 * D];
    int lane = threadIdx.x % 32, r = blockIdx.y;
    const float* own = params + r * P;
    stage_rows(lines, own + projection);
    stage(bias, own + projection + D * D, D);
    if (x_norm != NO_NORM) stage(scales, own + x_norm, 2 * D);
    __syncthreads();
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part v, y;
        load_part(v, attended + at, lane);
        begin_with(y, bias, lane);
        add_product(y, v, lines, lane);
        load_part(v, x + at, lane);
        if (x_norm != NO_NORM) scale_and_shift(v, scales, lane);
        EACH_NUMBER y[m][k][e] += v[m][k][e];
        normalise(y, var + r * rows, tile * 32, rows, lane);
        store_part(xhat + at, y, lane);
    }
}

// norm_attended, then the feed-forward block and the norm after it: xhat and var of both norms. The first xhat and the hidden layer are kept where
// they have a place. The block's two linear layers lie behind each other.
extern "C" __global__ void norm_fed_forward(float* xhat1, float* var1, float* hidden, float* xhat2, float* var2, const float* attended,
                                            const float* x, const float* params, u64 P, u64 x_norm, u64 projection, u64 norm, u64 layers,
                                            u64 rows, u64 tiles) {
    __shared__ __align__(16) u32 lines[3][D * LINE];
    __shared__ float bias[3][D], scales[2][2 * D];
    int lane = threadIdx.x % 32, r = blockIdx.y;
    const float* own = params + r * P;
    u64 linear[3] = {projection, layers, layers + D * D + D};
#pragma unroll
    for (int layer = 0; layer < 3; layer++) {
        stage_rows(lines[layer], own + linear[layer]);
        stage(bias[layer], own + linear[layer] + D * D, D);
    }
    if (x_norm != NO_NORM) stage(scales[0], own + x_norm, 2 * D);
    stage(scales[1], own + norm, 2 * D);
    __syncthreads();
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part v, y, h;
        load_part(v, attended + at, lane);
        begin_with(y, bias[0], lane);
        add_product(y, v, lines[0], lane);
        load_part(v, x + at, lane);
        if (x_norm != NO_NORM) scale_and_shift(v, scales[0], lane);
        EACH_NUMBER y[m][k][e] += v[m][k][e];
        normalise(y, var1 + r * rows, tile * 32, rows, lane);
        if (xhat1) store_part(xhat1 + at, y, lane);
        scale_and_shift(y, scales[1], lane);
        begin_with(h, bias[1], lane);
        add_product(h, y, lines[1], lane);
        EACH_NUMBER h[m][k][e] = fmaxf(h[m][k][e], 0.f);
        if (hidden) store_part(hidden + at, h, lane);
        begin_with(v, bias[2], lane);
        add_product(v, h, lines[2], lane);
        EACH_NUMBER y[m][k][e] += v[m][k][e];
        normalise(y, var2 + r * rows, tile * 32, rows, lane);
        store_part(xhat2 + at, y, lane);
    }
}

// xhat, var: the norm at the end of a stack.
extern "C" __global__ void norm_rows(float* xhat, float* var, const float* x, const float* params, u64 P, u64 x_norm, u64 rows, u64 tiles) {
    int lane = threadIdx.x % 32, r = blockIdx.y;
    EACH_TILE {
        u64 at = (r * tiles + tile) * 32 * D;
        Part v;
        load_part(v, x + at, lane);
        scale_and_shift(v, params + r * P + x_norm, lane);
        normalise(v, var + r * rows, tile * 32, rows, lane);
        store_part(xhat + at, v, lane);
    }
}

// out [R, rows]: the head on the last norm.
extern "C" __global__ void read_out(float* out, const float* x, const float* params, u64 P, u64 x_norm, u64 head, u64 rows, u64 tiles) {
    int lane = threadIdx.x % 32, r = blockIdx.y;
    const float* own = params + r * P;
    EACH_TILE {
        Part v;
        load_part(v, x + (r * tiles + tile) * 32 * D, lane);
        scale_and_shift(v, own + x_norm, lane);
        float sums[2][2] = {};
        EACH_NUMBER sums[m][e / 2] += v[m][k][e] * own[head + 8 * k + 2 * (lane % 4) + e % 2];
        finish_sums(sums);
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                u64 row = tile * 32 + 16 * m + lane / 4 + 8 * half;
                if (lane % 4 == 0 && row < rows) out[r * rows + row] = sums[m][half] + own[head + D];
            }
    }
}

// What the decoder reads, from its own outputs cut at 1/2; *changed where that is not what it read. A thread has a row.
extern "C" __global__ void read_own_outputs(u8* inputs, u32* changed, const float* out, int n, u64 rows) {
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x, at = blockIdx.y * rows + row;
    if (row >= rows || row % n == n - 1) return;
    u8 written = out[at] > 0.5f;
    if (inputs[at + 1] != written) inputs[at + 1] = written, *changed = 1;
}
