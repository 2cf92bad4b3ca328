// What the kernels that compute a whole layer in registers share: LayerNorm and the feed-forward block of 16 rows of a warp (tensor.cu).
//
// Rows come out of products multiplied by powers of two. LayerNorm undoes that by itself, if its eps is multiplied by the square.

// The sum of the squares of each of a lane's two rows, over D.
__device__ __forceinline__ void variance_of_rows(float (*v)[4], float* var) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float square = 0.f;
#pragma unroll
        for (int t = 0; t < 16; t++) square += v[t][half * 2] * v[t][half * 2] + v[t][half * 2 + 1] * v[t][half * 2 + 1];
        var[half] = sum_over_quad(square) / D;
    }
}

// Rows whose mean is 0, times `power` -> xhat; var: their variance without the power.
__device__ __forceinline__ void normalise_centred(float (*v)[4], float power, float inverse, float* var) {
    variance_of_rows(v, var);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float factor = rsqrtf(var[half] + EPS * power * power);
#pragma unroll
        for (int t = 0; t < 16; t++) v[t][half * 2] *= factor, v[t][half * 2 + 1] *= factor;
        var[half] *= inverse * inverse;
    }
}

// The same of rows with any mean.
__device__ __forceinline__ void normalise_rows(float (*v)[4], float power, float inverse, float* var) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float mean = 0.f;
#pragma unroll
        for (int t = 0; t < 16; t++) mean += v[t][half * 2] + v[t][half * 2 + 1];
        mean = sum_over_quad(mean) / D;
#pragma unroll
        for (int t = 0; t < 16; t++) v[t][half * 2] -= mean, v[t][half * 2 + 1] -= mean;
    }
    normalise_centred(v, power, inverse, var);
}

// A feed-forward block as its rows read it. Its vectors lie in shared memory: bias [FF]; and for each pair of columns two factors and two
// offsets of the residual, which stand for scale * xhat + shift + the second bias.
struct Block {
    u32 first, second;  // images of the folded W1 and of W2
    float inverse_1;    // what hidden numbers come multiplied by, undone; with `up` in it where they are not kept as they are
    float up;           // hidden numbers are multiplied by it to be factors: no one of them can become too large
    float power;        // what the result is multiplied by
    float inverse;
    const float* bias;
    const float4* residual;
};

#define BLOCK_FLOATS (FF + 2 * D)

// What a layer stores of its first norm and its hidden numbers for the way back.
enum Kept { NOTHING, FLOATS, HALVES };

// The largest of 128 numbers, in every thread of a block of any size. `room`: a float of shared memory that nobody else uses.
__device__ __forceinline__ float largest_of_block(const float* v, float* room) {
    if (threadIdx.x < 32) {
        float most = fmaxf(fmaxf(v[threadIdx.x], v[threadIdx.x + 32]), fmaxf(v[threadIdx.x + 64], v[threadIdx.x + 96]));
        most = max_over_warp(most);
        if (threadIdx.x == 0) *room = most;
    }
    __syncthreads();
    return *room;
}

// From its replica's numbers: powers of W1 and W2, folded bias and what no hidden number exceeds (`fold`), and the residual's vectors.
// `vectors`: BLOCK_FLOATS floats of shared memory, to be waited for.
template <Kept KEPT>
__device__ __forceinline__ Block block_of(float* vectors, float* room, u32 first, u32 second, const float* power_1, const float* power_2,
                                          const float* bias, const float* bounds, const float* scale, const float* shift, const float* bias2) {
    Block b;
    float down;
    power_for(largest_of_block(bounds, room), SMALL_WEIGHT, &b.up, &down);
    b.first = first, b.second = second, b.inverse_1 = power_1[1] * (KEPT == FLOATS ? 1.f : b.up);
    b.power = b.up * power_2[0], b.inverse = down * power_2[1];
    b.bias = vectors, b.residual = (const float4*)(vectors + FF);
    for (int k = threadIdx.x; k < D; k += blockDim.x) {
        vectors[k] = bias[k] * (KEPT == FLOATS ? 1.f : b.up);
        float* own = vectors + FF + k / 2 * 4 + k % 2;
        own[0] = scale[k] * b.power, own[2] = (shift[k] + bias2[k]) * b.power;
    }
    return b;
}

// x: xhat -> the input of the second norm, times b.power. What the ReLU leaves is stored in `hidden` if it is kept; as halves (store_left) times
// b.up. Half of the hidden numbers at a time, which takes fewer registers.
template <Kept KEPT>
__device__ __forceinline__ void feed_forward(float (*x)[4], const Block& b, void* hidden, u32 begin, u32 rows, int lane) {
    u32 a[8][PARTS][4];
#pragma unroll
    for (int t = 0; t < 16; t += 2)
#pragma unroll
        for (int q = 0; q < 4; q++) put_left(a[t / 2], q, x[t + q / 2][q % 2 * 2], x[t + q / 2][q % 2 * 2 + 1]);
#pragma unroll
    for (int t = 0; t < 16; t++) {
        float4 own = b.residual[t * 4 + lane % 4];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            x[t][half * 2] = x[t][half * 2] * own.x + own.z;
            x[t][half * 2 + 1] = x[t][half * 2 + 1] * own.y + own.w;
        }
    }
#pragma unroll
    for (int side = 0; side < 2; side++) {
        float h[8][4] = {};
        begin_product<8>(h);
#pragma unroll
        for (int t = 0; t < 8; t++) product_step<8>(h, a[t], b.first, 128, t * 16, lane, side * 64);
        end_product<8>(h);
        u32 left[4][PARTS][4];
#pragma unroll
        for (int t = 0; t < 8; t++) {
            float2 bias = *(const float2*)(b.bias + side * 64 + t * 8 + lane % 4 * 2);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float low = h[t][half * 2] * b.inverse_1 + bias.x, high = h[t][half * 2 + 1] * b.inverse_1 + bias.y;
                if (KEPT == FLOATS) {
                    u32 row = begin + lane / 4 + half * 8;
                    float2* place = (float2*)((float*)hidden + (u64)row * FF + side * 64 + t * 8 + lane % 4 * 2);
                    if (row < rows) *place = make_float2(fmaxf(low, 0.f), fmaxf(high, 0.f));
                    low *= b.up, high *= b.up;
                }
                put_left_positive(left[t / 2], t % 2 * 2 + half, low, high);
            }
        }
        if (KEPT == HALVES) store_left<4>((unsigned short*)hidden + side * 64, left, begin, rows, lane);
        begin_product(x);
#pragma unroll
        for (int t = 0; t < 4; t++) product_step(x, left[t], b.second, 128, side * 64 + t * 16, lane);
        end_product(x);
    }
}
