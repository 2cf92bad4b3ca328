// Gradients of the weights of linear layers and norms: sums over all rows, of all layers at once.

// One of them: that of a linear layer y = W x + b is dy^T x and the sum of dy; that of a norm the diagonal of dy^T xhat, and the same sum.
struct Job {
    const float* dy;     // [R, rows, D]
    const float* x;      // [R, rows, D]
    u64 x_norm;          // whose scale and shift x lacks
    u64 weight, bias;    // where their gradients go
    u64 kind;            // 0: linear; 1: norm; 2: a linear layer with one output; 3: one of keys
};

#define SUMS (D * D + D)

// parts [R, jobs, parts, D * D + D]: each block's sums of its tiles of rows. Four warps.
extern "C" __global__ void __launch_bounds__(128) weight_gradients(float* parts, const Job* jobs, u64 tiles) {
    __shared__ float sums[4][SUMS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, r = blockIdx.z;
    Job job = jobs[blockIdx.y];
    const float *dy = job.dy + r * tiles * 32 * D, *x = job.x + r * tiles * 32 * D;
    float c[2][4][4] = {}, bias[2][2] = {};
    for (u64 tile = blockIdx.x * 4 + warp; tile < tiles; tile += gridDim.x * 4) {
        const float4 *left = (const float4*)(dy + tile * 32 * D), *right = (const float4*)(x + tile * 32 * D);
        // Which of a product's rows, columns and steps is which does not matter, if it is known: four numbers that lie side by side, of the columns
        // 16 half + 2 g and the next and the rows t + 4 step and eight further, are a lane's part of a left factor, or of two right ones.
#pragma unroll
        for (int step = 0; step < 4; step++) {
            int at = step / 2 * 4 * 32 + g / 4 * 32 + (t + step % 2 * 4) * 4 + g % 4;
            float4 a[2] = {left[at], left[at + 64]}, b[2] = {right[at], right[at + 64]};
#pragma unroll
            for (int half = 0; half < 2; half++) bias[half][0] += a[half].x + a[half].z, bias[half][1] += a[half].y + a[half].w;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                u32 factor[4] = {tf32(a[half].x), tf32(a[half].y), tf32(a[half].z), tf32(a[half].w)};
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    multiply_tf32(c[half][2 * k], factor, tf32(b[k].x), tf32(b[k].z));
                    multiply_tf32(c[half][2 * k + 1], factor, tf32(b[k].y), tf32(b[k].w));
                }
            }
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[warp][(16 * half + 2 * g + e / 2) * D + 16 * (k / 2) + 4 * t + 2 * (e % 2) + k % 2] = c[half][k][e];
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            bias[half][e] += __shfl_xor_sync(0xffffffffu, bias[half][e], 1);
            bias[half][e] += __shfl_xor_sync(0xffffffffu, bias[half][e], 2);
            if (t == 0) sums[warp][D * D + 16 * half + 2 * g + e] = bias[half][e];
        }
    __syncthreads();
    float* to = parts + (((u64)r * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * SUMS;
    for (int k = threadIdx.x; k < SUMS; k += 128) to[k] = sums[0][k] + sums[1][k] + sums[2][k] + sums[3][k];
}

// The gradients, from parts: all of a job by one block. That of a bias of keys is 0, since it cancels in the softmax; rounding would make noise of
// it, which AdamW turns into full steps.
extern "C" __global__ void gather_gradients(float* grads, const float* parts, const Job* jobs, const float* params, u64 P, int count, float share) {
    __shared__ float sums[SUMS];
    int r = blockIdx.y;
    Job job = jobs[blockIdx.x];
    const float* from = parts + ((u64)r * gridDim.x + blockIdx.x) * count * SUMS;
    for (int k = threadIdx.x; k < SUMS; k += THREADS) {
        float sum = 0.f;
        for (int part = 0; part < count; part++) sum += from[(u64)part * SUMS + k];
        sums[k] = sum * share;
    }
    __syncthreads();
    const float* own = params + r * P;
    float* to = grads + r * P;
    int outputs = job.kind == 2 ? 1 : D;
    for (int k = threadIdx.x; k < D * D; k += THREADS) {
        int o = k / D, i = k % D;
        float sum = sums[k];
        if (job.x_norm != NO_NORM) sum = sum * own[job.x_norm + i] + sums[D * D + o] * own[job.x_norm + D + i];
        if (job.kind == 1) {
            if (o == i) to[job.weight + i] = sum;
        } else if (o < outputs)
            to[job.weight + k] = sum;
    }
    if (threadIdx.x < outputs) to[job.bias + threadIdx.x] = job.kind == 3 ? 0.f : sums[D * D + threadIdx.x];
}
