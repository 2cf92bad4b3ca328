// Gradients of weights, sums over rows: each kernel of the way back adds up those of its rows, where their factors are at hand.
//
// parts [R, blocks, P]: a block's sums, each where its parameter lies. gather_gradients adds them up. Shared memory: two matrices of 32 rows of D
// numbers for each warp.

// A lane's columns, 8 k + 2 t + e at [k][e], summed over its rows.
typedef float Columns[4][2];

// Of a norm: its output's gradient times its output before scale and shift; and the gradient.
struct NormSums {
    Columns scale, shift;
};

// Of a linear layer: dy^T x, as a product's sums lie; and dy.
struct LayerSums {
    float weight[2][4][4];
    Columns bias;
};

__device__ __forceinline__ void add_norm(NormSums& sums, const Part& dy, const Part& xhat) {
    EACH_NUMBER sums.scale[k][e % 2] += dy[m][k][e] * xhat[m][k][e], sums.shift[k][e % 2] += dy[m][k][e];
}

// A warp's rows to shared memory, as they lie in tiles. The lanes have read what was there before.
__device__ __forceinline__ void show_rows(uint4* to, const Part& x, int lane) {
    __syncwarp();
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 4; k++) to[(m * 4 + k) * 32 + lane] = make_uint4(tf32(x[m][k][0]), tf32(x[m][k][1]), tf32(x[m][k][2]), tf32(x[m][k][3]));
    __syncwarp();
}

// Of a layer, from dy and a shown x; `room` is for dy.
__device__ __forceinline__ void add_layer(LayerSums& sums, const Part& dy, const uint4* x, uint4* room, int lane) {
    int g = lane / 4, t = lane % 4;
    show_rows(room, dy, lane);
    EACH_NUMBER sums.bias[k][e % 2] += dy[m][k][e];
    // Which of a product's rows, columns and steps is which does not matter, if it is known: four numbers that lie side by side, of the columns
    // 16 half + 2 g and the next and the rows t + 4 step and eight further, are a lane's part of a left factor, or of two right ones.
#pragma unroll
    for (int step = 0; step < 4; step++) {
        int at = step / 2 * 4 * 32 + g / 4 * 32 + (t + step % 2 * 4) * 4 + g % 4;
        uint4 b[2] = {x[at], x[at + 64]};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint4 four = room[at + 64 * half];
            u32 a[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int k = 0; k < 2; k++) {
                multiply_tf32(sums.weight[half][2 * k], a, b[k].x, b[k].z);
                multiply_tf32(sums.weight[half][2 * k + 1], a, b[k].y, b[k].w);
            }
        }
    }
}

// The block's sum of columns, to [D].
__device__ __forceinline__ void store_columns(float* to, Columns& sums, float* memory) {
    int lane = threadIdx.x % 32;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
#pragma unroll
            for (int by = 4; by < 32; by *= 2) sums[k][e] += __shfl_xor_sync(0xffffffffu, sums[k][e], by);
            if (lane < 4) memory[threadIdx.x / 32 * D + 8 * k + 2 * lane + e] = sums[k][e];
        }
    __syncthreads();
    if (threadIdx.x >= D) return;
    float sum = 0.f;
    for (int warp = 0; warp < WARPS; warp++) sum += memory[warp * D + threadIdx.x];
    to[threadIdx.x] = sum;
}

// The block's sums for a norm, to its scale and shift.
__device__ __forceinline__ void store_norm(float* to, NormSums& sums, float* memory) {
    store_columns(to, sums.scale, memory);
    store_columns(to + D, sums.shift, memory);
}

// The block's sums for a layer, to its weight and bias.
__device__ __forceinline__ void store_layer(float* weight, float* bias, LayerSums& sums, float* memory) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    store_columns(bias, sums.bias, memory);
    __syncthreads();
    float* own = memory + threadIdx.x / 32 * D * D;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) own[(16 * half + 2 * g + e / 2) * D + 16 * (k / 2) + 4 * t + 2 * (e % 2) + k % 2] = sums.weight[half][k][e];
    __syncthreads();
    for (int k = threadIdx.x; k < D * D; k += THREADS) {
        float sum = 0.f;
        for (int warp = 0; warp < WARPS; warp++) sum += memory[warp * D * D + k];
        weight[k] = sum;
    }
}

// grads [R, P] of parameters first .. end - 1, from parts [R, count, P]. A thread has a parameter.
extern "C" __global__ void gather_gradients(float* grads, const float* parts, u64 P, u64 first, u64 end, int count, float share) {
    u64 k = first + (u64)blockIdx.x * THREADS + threadIdx.x;
    int r = blockIdx.y;
    if (k >= end) return;
    float sum = 0.f;
    for (int part = 0; part < count; part++) sum += parts[((u64)r * count + part) * P + k];
    grads[r * P + k] = sum * share;
}
