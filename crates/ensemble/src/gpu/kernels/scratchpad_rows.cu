// What is done to each row by itself, from strings to outputs. A thread has a row.

// Scores are kept in powers of two: exp(q k / 4) = 2^(q' k)
#define QUERY_SCALE (0.25f * 1.44269504088896341f)

// Of bits [sets, B, n]: labels [R, B, n], the parity up to each position, and inputs [R, B, n], what the decoder reads there: the label before it,
// 2 at the start. A warp has a string.
extern "C" __global__ void prefix_parities(float* labels, u8* inputs, const u8* bits, int B, int n, int sets) {
    int b = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
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
extern "C" __global__ void embed_rows(float* x, const u8* tokens, const float* params, u64 P, u64 token, u64 position, int n, u64 rows,
                                      u64 tiles, int sets) {
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    int r = blockIdx.y;
    if (row >= rows) return;
    const float* own = params + r * P;
    int width = CONCAT ? D / 2 : D;
    const float* of_token = own + token + tokens[(r % sets) * rows + row] * width;
    const float* of_position = own + position + row % n * width;
    float v[D];
#pragma unroll
    for (int c = 0; c < D; c++) {
        if (CONCAT) v[c] = c < D / 2 ? of_token[c] : of_position[c - D / 2];
        else v[c] = of_token[c] + of_position[c];
    }
    store_row(x + r * tiles * 32 * D + place_of(row), v);
}

// Queries, keys and values, as halves [R, B, heads, n, HEAD] each, of in-projection [3 D, D]; those that have no place are left out.
extern "C" __global__ void project_rows(u16* queries, u16* keys, u16* values, const float* x, const float* params, u64 P, u64 norm,
                                        u64 projection, int n, u64 rows, u64 tiles) {
    __shared__ __align__(16) float weight[3 * D * D], bias[3 * D], scales[2 * D];
    int r = blockIdx.y;
    const float* own = params + r * P;
    stage(weight, own + projection, 3 * D * D);
    stage(bias, own + projection + 3 * D * D, 3 * D);
    if (norm != NO_NORM) stage(scales, own + norm, 2 * D);
    __syncthreads();
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    float v[D], y[D];
    load_row(v, x + r * tiles * 32 * D + place_of(row));
    if (norm != NO_NORM) scale_and_shift(v, scales);
    u16* outs[3] = {queries, keys, values};
    u64 string = r * (rows / n) + row / n, i = row % n;
#pragma unroll
    for (int part = 0; part < 3; part++) {
        if (!outs[part]) continue;
        linear(y, v, weight + part * D * D, bias + part * D);
        float by = part == 0 ? QUERY_SCALE : 1.f;
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            u32 packed[HEAD / 2];
#pragma unroll
            for (int k = 0; k < HEAD / 2; k++) packed[k] = halves(y[h * HEAD + 2 * k] * by, y[h * HEAD + 2 * k + 1] * by);
            uint4* to = (uint4*)(outs[part] + ((string * HEADS + h) * n + i) * HEAD);
            to[0] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
            to[1] = make_uint4(packed[4], packed[5], packed[6], packed[7]);
        }
    }
}

// xhat, var: the norm of x plus what was attended to, through the out-projection.
extern "C" __global__ void norm_attended(float* xhat, float* var, const float* attended, const float* x, const float* params, u64 P,
                                         u64 x_norm, u64 projection, u64 rows, u64 tiles) {
    __shared__ __align__(16) float weight[D * D + D], scales[2 * D];
    int r = blockIdx.y;
    const float* own = params + r * P;
    stage(weight, own + projection, D * D + D);
    if (x_norm != NO_NORM) stage(scales, own + x_norm, 2 * D);
    __syncthreads();
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u64 at = r * tiles * 32 * D + place_of(row);
    float v[D], y[D], o[D];
    load_row(o, attended + at);
    linear(y, o, weight, weight + D * D);
    load_row(v, x + at);
    if (x_norm != NO_NORM) scale_and_shift(v, scales);
#pragma unroll
    for (int c = 0; c < D; c++) y[c] += v[c];
    var[r * rows + row] = normalise(y);
    store_row(xhat + at, y);
}

// hidden, xhat, var: the feed-forward layer after a norm, and the norm after it. Its two linear layers lie behind each other.
extern "C" __global__ void norm_fed_forward(float* hidden, float* xhat, float* var, const float* x, const float* params, u64 P, u64 x_norm,
                                            u64 layers, u64 rows, u64 tiles) {
    __shared__ __align__(16) float weights[2 * (D * D + D)], scales[2 * D];
    int r = blockIdx.y;
    const float* own = params + r * P;
    stage(weights, own + layers, 2 * (D * D + D));
    stage(scales, own + x_norm, 2 * D);
    __syncthreads();
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u64 at = r * tiles * 32 * D + place_of(row);
    float v[D], h[D], y[D];
    load_row(v, x + at);
    scale_and_shift(v, scales);
    linear(h, v, weights, weights + D * D);
#pragma unroll
    for (int c = 0; c < D; c++) h[c] = fmaxf(h[c], 0.f);
    if (hidden) store_row(hidden + at, h);
    linear(y, h, weights + D * D + D, weights + 2 * D * D + D);
#pragma unroll
    for (int c = 0; c < D; c++) y[c] += v[c];
    var[r * rows + row] = normalise(y);
    store_row(xhat + at, y);
}

// xhat, var: the norm at the end of a stack.
extern "C" __global__ void norm_rows(float* xhat, float* var, const float* x, const float* params, u64 P, u64 x_norm, u64 rows, u64 tiles) {
    __shared__ float scales[2 * D];
    int r = blockIdx.y;
    stage(scales, params + r * P + x_norm, 2 * D);
    __syncthreads();
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u64 at = r * tiles * 32 * D + place_of(row);
    float v[D];
    load_row(v, x + at);
    scale_and_shift(v, scales);
    var[r * rows + row] = normalise(v);
    store_row(xhat + at, v);
}

// out [R, rows]: the head on the last norm.
extern "C" __global__ void read_out(float* out, const float* x, const float* params, u64 P, u64 x_norm, u64 head, u64 rows, u64 tiles) {
    int r = blockIdx.y;
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    const float *own = params + r * P, *from = x + r * tiles * 32 * D + place_of(row);
    float sum = own[head + D];
#pragma unroll
    for (int c = 0; c < D; c++) sum += (from[32 * c] * own[x_norm + c] + own[x_norm + D + c]) * own[head + c];
    out[r * rows + row] = sum;
}

// What the decoder reads, from its own outputs cut at 1/2; *changed where that is not what it read.
extern "C" __global__ void read_own_outputs(u8* inputs, u32* changed, const float* out, int n, u64 rows) {
    u64 row = (u64)blockIdx.x * THREADS + threadIdx.x, at = blockIdx.y * rows + row;
    if (row >= rows || row % n == n - 1) return;
    u8 written = out[at] > 0.5f;
    if (inputs[at + 1] != written) inputs[at + 1] = written, *changed = 1;
}
