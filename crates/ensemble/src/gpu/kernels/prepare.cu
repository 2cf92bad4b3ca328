// Right factors of products on tensor cores, as tensor.cu describes them, and the tables that first_layer adds to.

// Makes one from a matrix [128, columns] of each replica, read at strides of `down` and `across`, one of which is 1, and scaled by a power of two,
// and notes that power and one over it in powers [R, 2]. Columns come in groups, of which only the first `real` are there; the others are 0. So do
// rows, in groups of `tall` with `filled` there. Columns, groups and tall are powers of two, given by their exponents.
// One block for each replica; images lie `stride` halves apart, replicas of the matrix `apart` floats.
extern "C" __global__ void __launch_bounds__(1024) prepare(unsigned short* images, u64 stride, float* powers, const float* matrix, u64 apart,
                                                           int down, int across, int columns, int pitch, int group, int real, int tall, int filled) {
    extern __shared__ float tile[]; // [128, columns + 1]
    __shared__ float largest[32];
    int r = blockIdx.y, width = (1 << columns) + 1;
    const float* own = matrix + r * apart;
    unsigned short* image = images + r * stride;
    float most = 0.f, scale, inverse;
#pragma unroll 8
    for (int k = threadIdx.x; k < 128 << columns; k += 1024) {
        // Neighbours read what lies side by side.
        int row = across == 1 ? k >> columns : k % 128, column = across == 1 ? k & ((1 << columns) - 1) : k / 128;
        int within = column & ((1 << group) - 1), under = row & ((1 << tall) - 1);
        bool there = within < real && under < filled;
        float value = there ? own[((row >> tall) * filled + under) * down + ((column >> group) * real + within) * across] : 0.f;
        tile[row * width + column] = value;
        most = fmaxf(most, fabsf(value));
    }
    most = max_over_warp(most);
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
    power_for(max_over_warp(largest[threadIdx.x % 32]), SMALL_WEIGHT, &scale, &inverse);
    if (threadIdx.x == 0) powers[2 * r] = scale, powers[2 * r + 1] = inverse;
    // Eight numbers at a time lie together in the image, too.
    for (int k = threadIdx.x; k < 16 << columns; k += 1024) {
        int row = k >> (columns - 3), column = (k & ((1 << (columns - 3)) - 1)) * 8;
        float v[8];
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = tile[row * width + column + e] * scale;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            u32 words[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                words[e] = halves(v[2 * e], v[2 * e + 1]);
                v[2 * e] -= from_half((unsigned short)words[e]), v[2 * e + 1] -= from_half((unsigned short)(words[e] >> 16));
            }
            *(uint4*)(image + part * 128 * pitch + place_right(row, column)) = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

// The values through the output projection, [R, HEADS * 2n, D], less their mean over D, which the norm removes anyway: then it need not
// look for it. One warp for each line.
extern "C" __global__ void centre_values(float* values, int lines) {
    int line = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (line >= lines) return;
    float* own = values + ((u64)blockIdx.y * lines + line) * D;
    float v[4], mean = 0.f;
#pragma unroll
    for (int k = 0; k < 4; k++) mean += v[k] = own[lane + 32 * k];
    mean = sum_over_warp(mean) / D;
#pragma unroll
    for (int k = 0; k < 4; k++) own[lane + 32 * k] = v[k] - mean;
}

// What attention's products are added to: embedded tokens E [R, 2n, D] and the projection's bias, less their mean, times the power that
// products come with. powers [R, 2]: that of the values. One warp for each token.
extern "C" __global__ void residuals(float* out, const float* E, const float* params, u64 P, u64 out_bias, const float* powers, int tokens) {
    int t = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, r = blockIdx.y;
    if (t >= tokens) return;
    u64 at = ((u64)r * tokens + t) * D;
    float v[4], mean = 0.f, power = FACTOR * powers[2 * r];
#pragma unroll
    for (int k = 0; k < 4; k++) mean += v[k] = E[at + lane + 32 * k] + params[r * P + out_bias + lane + 32 * k];
    mean = sum_over_warp(mean) / D;
#pragma unroll
    for (int k = 0; k < 4; k++) out[at + lane + 32 * k] = (v[k] - mean) * power;
}
