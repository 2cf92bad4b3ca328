// Gradients of the weights of linear layers and norms: sums over all rows, of all layers at once.

// One of them: that of a linear layer y = W x + b is dy^T x and the sum of dy; that of a norm the diagonal of dy^T xhat, and the same sum.
struct Job {
    const float* dy;     // [R, rows, D]
    const float* x;      // [R, rows, D]
    u64 x_norm;          // whose scale and shift x lacks
    u64 weight, bias;    // where their gradients go
    u64 kind;            // 0: linear; 1: norm; 2: a linear layer with one output
};

#define SUMS (D * D + D)

// Numbers as tensor cores read them in TF32, rounded to nearest.
__device__ __forceinline__ u32 tf32(float x) {
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// parts [R, jobs, parts, D * D + D]: each block's sums of its tiles of rows. Four warps.
extern "C" __global__ void __launch_bounds__(128) weight_gradients(float* parts, const Job* jobs, u64 tiles) {
    __shared__ float sums[4][SUMS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, r = blockIdx.z;
    Job job = jobs[blockIdx.y];
    const float *dy = job.dy + r * tiles * 32 * D, *x = job.x + r * tiles * 32 * D;
    float c[2][4][4] = {}, bias[4] = {};
    for (u64 tile = blockIdx.x * 4 + warp; tile < tiles; tile += gridDim.x * 4) {
        const float *a_from = dy + tile * 32 * D, *b_from = x + tile * 32 * D;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            // Rows 16 * half + 4 t ... of columns g, g + 8, g + 16, g + 24: which row is which of a product's eight does not matter, if both
            // factors have it in the same place.
            float4 a[4], b[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                a[k] = *(const float4*)(a_from + (g + 8 * k) * 32 + 16 * half + 4 * t);
                b[k] = *(const float4*)(b_from + (g + 8 * k) * 32 + 16 * half + 4 * t);
                bias[k] += a[k].x + a[k].y + a[k].z + a[k].w;
            }
#pragma unroll
            for (int step = 0; step < 2; step++) {
                u32 low[4], high[4], others[4], others_high[4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    low[k] = tf32(step ? a[k].z : a[k].x), high[k] = tf32(step ? a[k].w : a[k].y);
                    others[k] = tf32(step ? b[k].z : b[k].x), others_high[k] = tf32(step ? b[k].w : b[k].y);
                }
#pragma unroll
                for (int m = 0; m < 2; m++)
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                            : "+f"(c[m][k][0]), "+f"(c[m][k][1]), "+f"(c[m][k][2]), "+f"(c[m][k][3])
                            : "r"(low[2 * m]), "r"(low[2 * m + 1]), "r"(high[2 * m]), "r"(high[2 * m + 1]), "r"(others[k]),
                              "r"(others_high[k]));
            }
        }
    }
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[warp][(16 * m + g + e / 2 * 8) * D + 8 * k + 2 * t + e % 2] = c[m][k][e];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        bias[k] += __shfl_xor_sync(0xffffffffu, bias[k], 1);
        bias[k] += __shfl_xor_sync(0xffffffffu, bias[k], 2);
        if (t == 0) sums[warp][D * D + g + 8 * k] = bias[k];
    }
    __syncthreads();
    float* to = parts + (((u64)r * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * SUMS;
    for (int k = threadIdx.x; k < SUMS; k += 128) to[k] = sums[0][k] + sums[1][k] + sums[2][k] + sums[3][k];
}

// The gradients, from parts: all of a job by one block.
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
    if (threadIdx.x < outputs) to[job.bias + threadIdx.x] = sums[D * D + threadIdx.x];
}
