// What both kernels that take a feed-forward block backwards share (tensor.cu).

// In place: the gradient of xhat, times what `undo` undoes, -> the gradient of the first norm's input. var [rows].
__device__ __forceinline__ void normalise_rows_backward(float (*x)[4], float (*xhat)[4], const float* undo, const float* var, u32 first, u32 rows,
                                                        int lane) {
    float mean[2] = {}, dot[2] = {}, factor[2];
#pragma unroll
    for (int t = 0; t < 16; t++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            x[t][k] *= undo[k / 2];
            mean[k / 2] += x[t][k];
            dot[k / 2] += x[t][k] * xhat[t][k];
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        mean[half] = sum_over_quad(mean[half]) / D;
        dot[half] = sum_over_quad(dot[half]) / D;
        factor[half] = 1.f / sqrtf(var[min(first + lane / 4 + half * 8, rows - 1)] + EPS);
    }
#pragma unroll
    for (int t = 0; t < 16; t++)
#pragma unroll
        for (int k = 0; k < 4; k++) x[t][k] = factor[k / 2] * (x[t][k] - mean[k / 2] - xhat[t][k] * dot[k / 2]);
}

// parts [2, R, blocks, 128]: a block's sums over its rows of dhidden and of after * norm1, of which each lane has its own columns. `sums`: shared
// memory [8 warps, 2, 128].
__device__ __forceinline__ void store_sums(float* parts, float (*bias)[2], float (*along)[2], float* sums, int r, int warp, int lane) {
    // The lanes of a warp that hold the same columns, then the warps in order.
#pragma unroll
    for (int t = 0; t < 16; t++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
#pragma unroll
            for (int o = 4; o < 32; o *= 2) {
                bias[t][k] += __shfl_xor_sync(FULL, bias[t][k], o);
                along[t][k] += __shfl_xor_sync(FULL, along[t][k], o);
            }
            if (lane < 4) {
                sums[warp * 2 * D + t * 8 + lane * 2 + k] = bias[t][k];
                sums[warp * 2 * D + D + t * 8 + lane * 2 + k] = along[t][k];
            }
        }
    __syncthreads();
    int which = threadIdx.x / D, c = threadIdx.x % D;
    float sum = 0.f;
    for (int w = 0; w < 8; w++) sum += sums[w * 2 * D + which * D + c];
    parts[(((u64)which * gridDim.y + r) * gridDim.x + blockIdx.x) * D + c] = sum;
}
