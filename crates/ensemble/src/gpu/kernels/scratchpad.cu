// The scratchpad's encoder-decoder: width 32, two heads of 16, feed-forward layers of 32.
//
// A row is one position of one string, row = b * n + i. Vectors of rows lie in tiles of 32 rows as tensor cores give them:
// [R, tiles, 2, 4, 32 lanes, 4], where lane 4 g + t has, of 16 rows and 8 columns, rows g and g + 8 and columns 2 t and 2 t + 1. A warp has a tile,
// and each lane its 32 numbers of it. Behind a linear layer's weight lies its bias, behind a norm's scale its shift. A norm's output is kept before
// scale and shift; NO_NORM says that a vector is what it is. In the last tile rows may be missing; their gradients are 0.

#define NO_NORM (~0ull)
#define HEAD 16
#define WARPS (THREADS / 32)

typedef unsigned short u16;

// A lane's part of 32 rows: [16 rows, 8 columns, number]. Number e is of row 16 m + g + e / 2 * 8 and column 8 k + 2 t + e % 2.
typedef float Part[2][4][4];

#define EACH_NUMBER                    \
    _Pragma("unroll") for (int m = 0; m < 2; m++)     \
        _Pragma("unroll") for (int k = 0; k < 4; k++) \
            _Pragma("unroll") for (int e = 0; e < 4; e++)

// The tiles that a warp does, one after the other.
#define EACH_TILE for (u64 tile = (u64)blockIdx.x * WARPS + threadIdx.x / 32; tile < tiles; tile += (u64)gridDim.x * WARPS)

// Where a number of a row lies in its replica's tiles. Columns 2 c and 2 c + 1 lie side by side.
__device__ __forceinline__ u64 place_of(u64 row, int column) {
    u32 in = row % 32;
    return row / 32 * (32 * D) + ((in / 16 * 4 + column / 8) * 32 + in % 8 * 4 + column % 8 / 2) * 4 + in / 8 % 2 * 2 + column % 2;
}

__device__ __forceinline__ void load_part(Part& x, const float* tile, int lane) {
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float4 four = ((const float4*)tile)[(m * 4 + k) * 32 + lane];
            x[m][k][0] = four.x, x[m][k][1] = four.y, x[m][k][2] = four.z, x[m][k][3] = four.w;
        }
}

__device__ __forceinline__ void store_part(float* tile, const Part& x, int lane) {
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 4; k++) ((float4*)tile)[(m * 4 + k) * 32 + lane] = make_float4(x[m][k][0], x[m][k][1], x[m][k][2], x[m][k][3]);
}

// `count` parameters into shared memory, by all threads.
__device__ __forceinline__ void stage(float* to, const float* from, int count) {
    for (int k = threadIdx.x; k < count; k += THREADS) to[k] = from[k];
}

// A matrix [D, D] in shared memory as add_product reads it: lines of 40 numbers, so that eight lie in different banks.
#define LINE 40

// Row o of a weight becomes line o, or column i line i.
__device__ __forceinline__ void stage_rows(u32* to, const float* weight) {
    for (int k = threadIdx.x; k < D * D; k += THREADS) to[k / D * LINE + k % D] = tf32(weight[k]);
}

__device__ __forceinline__ void stage_columns(u32* to, const float* weight) {
    for (int k = threadIdx.x; k < D * D; k += THREADS) to[k % D * LINE + k / D] = tf32(weight[k]);
}

// y += x times the transpose of a staged matrix. Which column of x is which of a product's eight does not matter, if both factors have it in the
// same place: so a lane's numbers are its part of the left factor.
__device__ __forceinline__ void add_product(Part& y, const Part& x, const u32* lines, int lane) {
    int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        u32 a[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++) a[m][0] = tf32(x[m][j][0]), a[m][1] = tf32(x[m][j][2]), a[m][2] = tf32(x[m][j][1]), a[m][3] = tf32(x[m][j][3]);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint2 b = *(const uint2*)(lines + (8 * k + g) * LINE + 8 * j + 2 * t);
#pragma unroll
            for (int m = 0; m < 2; m++) multiply_tf32(y[m][k], a[m], b.x, b.y);
        }
    }
}

// y = the bias [D] in every row.
__device__ __forceinline__ void begin_with(Part& y, const float* bias, int lane) {
    EACH_NUMBER y[m][k][e] = bias[8 * k + 2 * (lane % 4) + e % 2];
}

// x times scale plus shift [2, D].
__device__ __forceinline__ void scale_and_shift(Part& x, const float* norm, int lane) {
    EACH_NUMBER {
        int c = 8 * k + 2 * (lane % 4) + e % 2;
        x[m][k][e] = x[m][k][e] * norm[c] + norm[D + c];
    }
}

// Sums over each row; those of row 16 m + g + 8 half are at [m][half] in all its lanes.
__device__ __forceinline__ void finish_sums(float (&sums)[2][2]) {
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            sums[m][half] += __shfl_xor_sync(0xffffffffu, sums[m][half], 1);
            sums[m][half] += __shfl_xor_sync(0xffffffffu, sums[m][half], 2);
        }
}

// x as it is after a LayerNorm, before its scale and shift; and its rows' variances [rows] from the tile's first row on.
__device__ __forceinline__ void normalise(Part& x, float* variances, u64 first, u64 rows, int lane) {
    float mean[2][2] = {}, variance[2][2] = {};
    EACH_NUMBER mean[m][e / 2] += x[m][k][e];
    finish_sums(mean);
    EACH_NUMBER {
        x[m][k][e] -= mean[m][e / 2] / D;
        variance[m][e / 2] += x[m][k][e] * x[m][k][e];
    }
    finish_sums(variance);
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u64 row = first + 16 * m + lane / 4 + 8 * half;
            variance[m][half] /= D;
            if (lane % 4 == 0 && row < rows) variances[row] = variance[m][half];
            variance[m][half] = 1.f / sqrtf(variance[m][half] + EPS);
        }
    EACH_NUMBER x[m][k][e] *= variance[m][e / 2];
}

// The gradient dy of a norm's output becomes that of its input. xhat is its output before scale and shift, `norm` its scale.
__device__ __forceinline__ void norm_backward(Part& dy, const Part& xhat, const float* variances, const float* norm, u64 first, u64 rows, int lane) {
    float mean[2][2] = {}, along[2][2] = {};
    EACH_NUMBER {
        dy[m][k][e] *= norm[8 * k + 2 * (lane % 4) + e % 2];
        mean[m][e / 2] += dy[m][k][e], along[m][e / 2] += dy[m][k][e] * xhat[m][k][e];
    }
    finish_sums(mean);
    finish_sums(along);
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u64 row = first + 16 * m + lane / 4 + 8 * half;
            float factor = 1.f / sqrtf((row < rows ? variances[row] : 1.f) + EPS);
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; e++)
                    dy[m][k][e] = factor * (dy[m][k][e] - mean[m][half] / D - xhat[m][k][e] * (along[m][half] / D));
        }
}
