// The whole first layer of one tile of rows in registers, for D = FF = 128 and n <= 32, on tensor cores (compute capability 8.0 on).
//
// Factors are rounded to f16, which keeps as many digits as TF32 does; everything between the products is f32. A block keeps the
// matrices of one replica in shared memory and walks through tiles of 128 rows (b, i), each warp with 16 of them. The output of one
// product has, lane by lane, the layout that the next one wants its input in, so rows never leave their warp.

#if D == 128 && FF == 128 && __CUDA_ARCH__ >= 800
#define TILE 128
#define LONG (D + 8) // a row of 128 halves, padded so that eight rows start in different banks

__device__ __forceinline__ u32 halves(float low, float high) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float from_half(unsigned short half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

// Of a matrix that does not change: the compiler may load it early.
__device__ __forceinline__ void load_four(u32* v, u32 address) {
    asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(address));
}

// Of what was just written: in its place.
__device__ __forceinline__ void load_four_now(u32* v, u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void multiply_add(float* c, const u32* a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c [16 rows, 128] += a [16 rows, columns k .. k + 15] times those columns of a matrix [128, pitch] of halves.
__device__ __forceinline__ void product_step(float (*c)[4], const u32* a, u32 matrix, int pitch, int k, int lane) {
    u32 own = matrix + 2 * ((lane / 16 * 8 + lane % 8) * pitch + k + lane / 8 % 2 * 8);
#pragma unroll
    for (int t = 0; t < 16; t += 2) {
        u32 b[4];
        load_four(b, own + 2 * t * 8 * pitch);
        multiply_add(c[t], a, b[0], b[1]);
        multiply_add(c[t + 1], a, b[2], b[3]);
    }
}

__device__ __forceinline__ float sum_over_quad(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

// Both rows of a lane, in place: s -> xhat.
__device__ __forceinline__ void normalise_pair(float (*v)[4], float* var) {
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
        float mean = 0.f, square = 0.f;
#pragma unroll
        for (int t = 0; t < 16; t++) mean += v[t][half] + v[t][half + 1];
        mean = sum_over_quad(mean) / D;
#pragma unroll
        for (int t = 0; t < 16; t++) {
            v[t][half] -= mean, v[t][half + 1] -= mean;
            square += v[t][half] * v[t][half] + v[t][half + 1] * v[t][half + 1];
        }
        square = sum_over_quad(square) / D;
        float factor = 1.f / sqrtf(square + EPS);
#pragma unroll
        for (int t = 0; t < 16; t++) v[t][half] *= factor, v[t][half + 1] *= factor;
        var[half / 2] = square;
    }
}

// Both rows of a lane into an array [rows, 128].
__device__ __forceinline__ void store_pair(float* out, float (*v)[4], u32 first, u32 rows, int lane) {
    u32 row = first + lane / 4;
    out += (u64)row * D + lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < 16; t++) {
        if (row < rows) *(float2*)(out + t * 8) = make_float2(v[t][0], v[t][1]);
        if (row + 8 < rows) *(float2*)(out + 8 * D + t * 8) = make_float2(v[t][2], v[t][3]);
    }
}

// From scores S and values V [R, HEADS * 2n, D], folded W and b, to norm2 [R, B * m, D]; `columns` is HEADS * 2n rounded up to 16.
// Where mix is given, what the way back needs is stored too: mix, norm1, hidden.
extern "C" __global__ void __launch_bounds__(256, 1)
    first_layer(float* mix, float* norm1, float* var1, float* hidden, float* norm2, float* var2, const float* S, const float* V,
                const float* E, const float* W, const float* bias1, const float* params, u64 P, u64 out_bias, u64 weight2, u64 bias2,
                u64 scale1, u64 shift1, const u8* bits, int B, int n, int m, int sets, int columns) {
    extern __shared__ __align__(16) u8 memory[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y, pitch = columns + 8, mixed = HEADS * 2 * n;
    unsigned short *values = (unsigned short*)memory, *first = values + D * pitch, *second = first + FF * LONG, *tile = second + D * LONG;
    float* vectors = (float*)(tile + TILE * pitch); // out bias, bias1, bias2, scale1, shift1
    float* scores = vectors + 5 * D;
    const float* own = params + r * P;

#pragma unroll 8
    for (int k = threadIdx.x; k < D * columns; k += 256) {
        int t = k / D, c = k % D;
        values[c * pitch + t] = (unsigned short)halves(t < mixed ? V[((u64)r * mixed + t) * D + c] : 0.f, 0.f);
    }
#pragma unroll 8
    for (int k = threadIdx.x; k < FF * D / 2; k += 256) {
        int row = k / (D / 2), c = k % (D / 2) * 2;
        float2 w = *(const float2*)(W + ((u64)r * FF + row) * D + c), w2 = *(const float2*)(own + weight2 + row * FF + c);
        *(u32*)(first + row * LONG + c) = halves(w.x, w.y);
        *(u32*)(second + row * LONG + c) = halves(w2.x, w2.y);
    }
    for (int k = threadIdx.x; k < D; k += 256) {
        vectors[k] = own[out_bias + k], vectors[D + k] = bias1[(u64)r * FF + k], vectors[2 * D + k] = own[bias2 + k];
        vectors[3 * D + k] = own[scale1 + k], vectors[4 * D + k] = own[shift1 + k];
    }
#pragma unroll 8
    for (int k = threadIdx.x; k < HEADS * 4 * n * n; k += 256) scores[k] = S[(u64)r * HEADS * 4 * n * n + k];
    for (int k = threadIdx.x; k < TILE * pitch / 2; k += 256) ((u32*)tile)[k] = 0; // the padding stays zero
    __syncthreads();

    u32 values_at = (u32)__cvta_generic_to_shared(values), first_at = (u32)__cvta_generic_to_shared(first);
    u32 second_at = (u32)__cvta_generic_to_shared(second);
    unsigned short* part = tile + warp * 16 * pitch;
    u32 part_at = (u32)__cvta_generic_to_shared(part);
    u32 rows = B * m;
    const u8* strings = bits + (u64)(r % sets) * B * n;

    for (u32 begin = blockIdx.x * TILE + warp * 16; begin - warp * 16 < rows; begin += gridDim.x * TILE) {
        // Attention weights of this warp's 16 rows: two lanes a row, each with half of the positions j.
        u32 mine = min(begin + lane / 2, rows - 1), string = mine / m, i = n - m + mine % m, mask = 0;
#pragma unroll
        for (int k = 0; k < 16; k++) {
            u32 b = __shfl_sync(0xffffffffu, string, 2 * k);
            u32 ones = __ballot_sync(0xffffffffu, lane < n && strings[b * n + lane]);
            mask = lane / 2 == k ? ones : mask;
        }
        int share = (n + 1) / 2, from = lane % 2 * share;
#pragma unroll 1
        for (int head = 0; head < HEADS; head++) {
            const float* row = scores + head * 4 * n * n + ((mask >> i & 1) * n + i) * 2 * n;
            unsigned short* to = part + lane / 2 * pitch + head * 2 * n;
            float e[16], largest = -3.4e38f, sum = 0.f;
#pragma unroll
            for (int k = 0; k < 16; k++) {
                int j = from + k;
                e[k] = k < share && j < n ? row[j + (mask >> j & 1) * n] : -3.4e38f;
                largest = fmaxf(largest, e[k]);
            }
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
#pragma unroll
            for (int k = 0; k < 16; k++)
                if (k < share) {
                    e[k] = expf(e[k] - largest);
                    sum += e[k];
                }
            sum = 1.f / (sum + __shfl_xor_sync(0xffffffffu, sum, 1));
#pragma unroll
            for (int k = 0; k < 16; k++) {
                int j = from + k, x = mask >> j & 1;
                if (k < share && j < n) {
                    to[j + x * n] = (unsigned short)halves(e[k] * sum, 0.f);
                    to[j + n - x * n] = 0;
                }
            }
        }
        __syncwarp();
        if (mix)
            for (int k = 0; k < 16 && begin + k < rows; k++)
                for (int c = lane; c < mixed; c += 32)
                    mix[((u64)r * rows + begin + k) * mixed + c] = from_half(part[k * pitch + c]);

        // Values, residual, first norm.
        float x1[16][4] = {}, var[2];
        for (int k = 0; k < columns; k += 16) {
            u32 a[4];
            load_four_now(a, part_at + 2 * ((lane / 8 % 2 * 8 + lane % 8) * pitch + k + lane / 16 * 8));
            product_step(x1, a, values_at, pitch, k, lane);
        }
        __syncwarp();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u32 row = min(begin + lane / 4 + half * 8, rows - 1), b = row / m, i = n - m + row % m;
            const float* e = E + ((u64)r * 2 * n + strings[b * n + i] * n + i) * D;
#pragma unroll
            for (int t = 0; t < 16; t++) {
                int c = t * 8 + lane % 4 * 2;
                float2 token = *(const float2*)(e + c);
                x1[t][half * 2] = token.x + (x1[t][half * 2] + vectors[c]);
                x1[t][half * 2 + 1] = token.y + (x1[t][half * 2 + 1] + vectors[c + 1]);
            }
        }
        normalise_pair(x1, var);
        u32 row = begin + lane / 4;
        if (lane % 4 == 0) {
            if (row < rows) var1[(u64)r * rows + row] = var[0];
            if (row + 8 < rows) var1[(u64)r * rows + row + 8] = var[1];
        }
        if (mix) store_pair(norm1 + (u64)r * rows * D, x1, begin, rows, lane);

        // Feed-forward block.
        float h[16][4];
#pragma unroll
        for (int t = 0; t < 16; t++) {
            int c = t * 8 + lane % 4 * 2;
            h[t][0] = h[t][2] = vectors[D + c], h[t][1] = h[t][3] = vectors[D + c + 1];
        }
#pragma unroll
        for (int t = 0; t < 16; t += 2) {
            u32 a[4] = {halves(x1[t][0], x1[t][1]), halves(x1[t][2], x1[t][3]), halves(x1[t + 1][0], x1[t + 1][1]),
                        halves(x1[t + 1][2], x1[t + 1][3])};
            product_step(h, a, first_at, LONG, t * 8, lane);
        }
#pragma unroll
        for (int t = 0; t < 16; t++)
#pragma unroll
            for (int k = 0; k < 4; k++) h[t][k] = fmaxf(h[t][k], 0.f);
        if (mix) store_pair(hidden + (u64)r * rows * FF, h, begin, rows, lane);
        u32 packed[16][2];
#pragma unroll
        for (int t = 0; t < 16; t++) packed[t][0] = halves(h[t][0], h[t][1]), packed[t][1] = halves(h[t][2], h[t][3]);

        // Residual into the sum the second product is added to; second norm.
#pragma unroll
        for (int t = 0; t < 16; t++) {
            int c = t * 8 + lane % 4 * 2;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int at = c + k % 2;
                x1[t][k] = x1[t][k] * vectors[3 * D + at] + vectors[4 * D + at] + vectors[2 * D + at];
            }
        }
#pragma unroll
        for (int t = 0; t < 16; t += 2) {
            u32 a[4] = {packed[t][0], packed[t][1], packed[t + 1][0], packed[t + 1][1]};
            product_step(x1, a, second_at, LONG, t * 8, lane);
        }
        normalise_pair(x1, var);
        if (lane % 4 == 0) {
            if (row < rows) var2[(u64)r * rows + row] = var[0];
            if (row + 8 < rows) var2[(u64)r * rows + row + 8] = var[1];
        }
        store_pair(norm2 + (u64)r * rows * D, x1, begin, rows, lane);
    }
}
#endif
