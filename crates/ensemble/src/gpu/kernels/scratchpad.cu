// The scratchpad's encoder-decoder: width 32, two heads of 16, feed-forward layers of 32.
//
// A row is one position of one string, row = b * n + i. Vectors of rows lie in tiles of 32 rows, column by column: [R, tiles, 32 columns, 32 rows]. A
// thread that has a row then reads side by side with its neighbours. Behind a linear layer's weight lies its bias, behind a norm's scale its shift.
// A norm's output is kept before scale and shift; NO_NORM says that a vector is what it is.

#define NO_NORM (~0ull)
#define HEAD 16

typedef unsigned short u16;

// Where the first number of a row lies in its replica's tiles; the others are 32 apart.
__device__ __forceinline__ u64 place_of(u64 row) { return row / 32 * (32 * D) + row % 32; }

__device__ __forceinline__ void load_row(float (&x)[D], const float* from) {
#pragma unroll
    for (int c = 0; c < D; c++) x[c] = from[32 * c];
}

__device__ __forceinline__ void store_row(float* to, const float (&x)[D]) {
#pragma unroll
    for (int c = 0; c < D; c++) to[32 * c] = x[c];
}

// `count` parameters into shared memory, by all threads.
__device__ __forceinline__ void stage(float* to, const float* from, int count) {
    for (int k = threadIdx.x; k < count; k += blockDim.x) to[k] = from[k];
}

// x times scale plus shift [2, D].
__device__ __forceinline__ void scale_and_shift(float (&x)[D], const float* norm) {
#pragma unroll
    for (int c = 0; c < D; c++) x[c] = x[c] * norm[c] + norm[D + c];
}

// y = W x + b of W [D, D] with b [D] behind it, in shared memory.
__device__ __forceinline__ void linear(float (&y)[D], const float (&x)[D], const float* weight, const float* bias) {
#pragma unroll
    for (int o = 0; o < D; o++) {
        float sum = bias[o];
#pragma unroll
        for (int i = 0; i < D; i += 4) {
            float4 w = *(const float4*)(weight + o * D + i);
            sum += w.x * x[i] + w.y * x[i + 1] + w.z * x[i + 2] + w.w * x[i + 3];
        }
        y[o] = sum;
    }
}

// dx += W^T dy
__device__ __forceinline__ void linear_backward(float (&dx)[D], const float (&dy)[D], const float* weight) {
#pragma unroll
    for (int o = 0; o < D; o++)
#pragma unroll
        for (int i = 0; i < D; i += 4) {
            float4 w = *(const float4*)(weight + o * D + i);
            dx[i] += w.x * dy[o], dx[i + 1] += w.y * dy[o], dx[i + 2] += w.z * dy[o], dx[i + 3] += w.w * dy[o];
        }
}

// x as it is after a LayerNorm, before its scale and shift; gives the variance.
__device__ __forceinline__ float normalise(float (&x)[D]) {
    float mean = 0.f, variance = 0.f;
#pragma unroll
    for (int c = 0; c < D; c++) mean += x[c];
    mean /= D;
#pragma unroll
    for (int c = 0; c < D; c++) x[c] -= mean, variance += x[c] * x[c];
    variance /= D;
    float factor = 1.f / sqrtf(variance + EPS);
#pragma unroll
    for (int c = 0; c < D; c++) x[c] *= factor;
    return variance;
}

// The gradient dy of a norm's output becomes that of its input. xhat is its output before scale and shift, `norm` its scale.
__device__ __forceinline__ void norm_backward(float (&dy)[D], const float* xhat, float variance, const float* norm) {
    float mean = 0.f, along = 0.f, factor = 1.f / sqrtf(variance + EPS);
#pragma unroll
    for (int c = 0; c < D; c++) {
        dy[c] *= norm[c];
        mean += dy[c], along += dy[c] * xhat[32 * c];
    }
    mean /= D, along /= D;
#pragma unroll
    for (int c = 0; c < D; c++) dy[c] = factor * (dy[c] - mean - xhat[32 * c] * along);
}

// Two numbers as halves.
__device__ __forceinline__ u32 halves(float low, float high) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
