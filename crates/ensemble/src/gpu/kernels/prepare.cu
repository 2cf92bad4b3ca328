// Right factors of products on tensor cores, as tensor.cu describes them.

// Makes one from a matrix [128, columns] of each replica, read at strides of `down` and `across` and scaled by a power of two, and
// notes that power and one over it in powers [R, 2]. Columns come in groups, of which only the first `real` are there; the others are 0.
// One block for each replica; images lie `stride` halves apart, replicas of the matrix `apart` floats.
extern "C" __global__ void __launch_bounds__(1024) prepare(unsigned short* images, u64 stride, float* powers, const float* matrix, u64 apart,
                                                           int down, int across, int columns, int pitch, int group, int real) {
    __shared__ float largest[32];
    int r = blockIdx.y;
    const float* own = matrix + r * apart;
    unsigned short* image = images + r * stride;
    float most = 0.f, scale, inverse;
#pragma unroll 8
    for (int k = threadIdx.x; k < 128 * columns; k += 1024) {
        int column = k % columns, within = column % group;
        if (within < real) most = fmaxf(most, fabsf(own[k / columns * down + (column / group * real + within) * across]));
    }
    most = max_over_warp(most);
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
    power_for(max_over_warp(largest[threadIdx.x % 32]), SMALL_WEIGHT, &scale, &inverse);
    if (threadIdx.x == 0) powers[2 * r] = scale, powers[2 * r + 1] = inverse;
#pragma unroll 8
    for (int k = threadIdx.x; k < 128 * columns; k += 1024) {
        int row = k / columns, column = k % columns, within = column % group;
        float value = within < real ? own[row * down + (column / group * real + within) * across] * scale : 0.f;
        int at = place_right(row, column);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            unsigned short half = image[part * 128 * pitch + at] = (unsigned short)halves(value, 0.f);
            value -= from_half(half);
        }
    }
}
