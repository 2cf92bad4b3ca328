// Matrix products on tensor cores (compute capability 8.0 on) for D = FF = 128, whose factors are f16 and whose sums are f32.
//
// PARTS is 1 for TF32: a factor is rounded to one half, which keeps as many digits as TF32 does. It is 2 for f32: a factor is the sum of
// two halves, which is off by 2^-24 of it at most, as a rounded f32 is, and a product is three products of halves; the fourth, of both
// small ones, would add 2^-24 of it. f16 has few exponents, so factors are scaled by powers of two, rows each by their own.
//
// A warp has 16 rows of 128 numbers in registers, as the products leave and want them: lane l holds of row l / 4 the columns
// 8 t + l % 4 * 2 + {0, 1} in v[t][0], v[t][1], and of row l / 4 + 8 the same in v[t][2], v[t][3]; t = 0 .. 15. So the output of one
// product is the input of the next without leaving its lane.

#define TILE 128 // rows that a block of feed_forward_backward does at a time
#define FULL 0xffffffffu
#define FACTOR 1024.f // 2^10: rows and matrices are scaled so that their largest lies between this and its double

// The numbers in place q of a left factor [PARTS][4]: each part is what those before it leave.
__device__ __forceinline__ void put_left(u32 (*a)[4], int q, float low, float high) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        u32 both = a[part][q] = halves(low, high);
        low -= from_half((unsigned short)both), high -= from_half((unsigned short)(both >> 16));
    }
}

// The same of what a ReLU leaves of them.
__device__ __forceinline__ void put_left_positive(u32 (*a)[4], int q, float low, float high) {
#if PARTS == 1
    a[0][q] = positive_halves(low, high);
#else
    put_left(a, q, fmaxf(low, 0.f), fmaxf(high, 0.f));
#endif
}

// The power of two that brings v to between FACTOR and its double, and its inverse. For v below 2^(least - 127), that of the latter.
__device__ __forceinline__ void power_for(float v, u32 least, float* scale, float* inverse) {
    u32 exponent = min(max(__float_as_uint(v) >> 23 & 255u, least), 214u);
    *scale = __uint_as_float((264u - exponent) << 23);
    *inverse = __uint_as_float((exponent - 10u) << 23);
}

#define SMALL_WEIGHT 97u   // 2^-30
#define SMALL_GRADIENT 40u // 2^-87

// A right factor is a matrix [PARTS][pitch / 64][128][64] of halves in shared memory, as out = in matrix^T reads it: panels of 64 columns.
// Eight of its numbers lie together; where they lie in their row is turned by the row, so that eight rows are in different banks. That is also
// the order in which wgmma reads factors that lie at multiples of 1024 bytes (its swizzle of 128 bytes). prepare.cu makes it.
__device__ __forceinline__ int place_right(int row, int column) {
    return column / 64 * (128 * 64) + row * 64 + ((column / 8 ^ row) % 8) * 8 + column % 8;
}

// `size` halves of images into shared memory; both are aligned to 16 bytes.
__device__ __forceinline__ void load_images(unsigned short* to, const unsigned short* from, int size) {
#pragma unroll 8
    for (int k = threadIdx.x * 8; k < size; k += blockDim.x * 8) copy_16_bytes(shared_address(to + k), from + k);
}

__device__ __forceinline__ void wait_for_images() {
    wait_for_copies();
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    show_to_products();
#endif
    __syncthreads();
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Before the first step of a product, whose factors and sums are then not to be touched, and after the last.
template <int TILES>
__device__ __forceinline__ void settle(float (*c)[4]) {
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int k = 0; k < 4; k++) settle(c[t][k]);
}
template <int TILES = 16>
__device__ __forceinline__ void begin_product(float (*c)[4]) {
    settle<TILES>(c);
    start_products();
}
template <int TILES = 16>
__device__ __forceinline__ void end_product(float (*c)[4]) {
    end_of_products();
    wait_for_products<0>();
    settle<TILES>(c);
}

// c [16 rows, 8 TILES] += a [16 rows, columns k .. k + 15] times those columns of a right factor, of which the rows from `first` on are read.
template <int TILES = 16>
__device__ __forceinline__ void product_step(float (*c)[4], u32 (*a)[4], u32 matrix, int pitch, int k, int lane, int first = 0) {
    u32 own = matrix + k / 64 * (2 * 128 * 64) + first * 128 + k % 64 * 2;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int left = 0; left < PARTS - part; left++) multiply_add<TILES>(c, a[left], own + 2 * part * 128 * pitch);
}
#else
template <int TILES = 16>
__device__ __forceinline__ void begin_product(float (*)[4]) {}
template <int TILES = 16>
__device__ __forceinline__ void end_product(float (*)[4]) {}

// c [16 rows, 8 TILES] += a [16 rows, columns k .. k + 15] times those columns of a right factor, of which the rows from `first` on are read.
template <int TILES = 16>
__device__ __forceinline__ void product_step(float (*c)[4], u32 (*a)[4], u32 matrix, int pitch, int k, int lane, int first = 0) {
    u32 own = matrix + k / 64 * (2 * 128 * 64) + 128 * (first + lane / 16 * 8 + lane % 8) + 16 * ((k / 8 + lane / 8 % 2 ^ lane) % 8);
#pragma unroll
    for (int t = 0; t < TILES; t += 4) {
        u32 b[8];
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            load_matrices(b, own + 2 * (part * 128 * pitch + t * 8 * 64));
            load_matrices(b + 4, own + 2 * (part * 128 * pitch + (t * 8 + 16) * 64));
#pragma unroll
            for (int left = 0; left < PARTS - part; left++)
#pragma unroll
                for (int s = 0; s < 4; s++) multiply(c[t + s], a[left], b[2 * s], b[2 * s + 1]);
        }
    }
}
#endif

// Rows v, each times its factor, as a left factor.
__device__ __forceinline__ void put_rows(u32 (*a)[PARTS][4], float (*v)[4], const float* scale) {
#pragma unroll
    for (int t = 0; t < 16; t += 2)
#pragma unroll
        for (int q = 0; q < 4; q++) {
            int half = q % 2;
            float* pair = v[t + q / 2] + half * 2;
            put_left(a[t / 2], q, pair[0] * scale[half], pair[1] * scale[half]);
        }
}

// c += rows v, each times its factor, times a right factor of pitch 128.
__device__ __forceinline__ void product(float (*c)[4], float (*v)[4], const float* scale, u32 matrix, int lane) {
    u32 a[8][PARTS][4];
    put_rows(a, v, scale);
    begin_product(c);
#pragma unroll
    for (int t = 0; t < 16; t += 2) product_step(c, a[t / 2], matrix, 128, t * 8, lane);
    end_product(c);
}

__device__ __forceinline__ float sum_over_quad(float v) {
    v += __shfl_xor_sync(FULL, v, 1);
    return v + __shfl_xor_sync(FULL, v, 2);
}

__device__ __forceinline__ float max_over_quad(float v) {
    v = fmaxf(v, __shfl_xor_sync(FULL, v, 1));
    return fmaxf(v, __shfl_xor_sync(FULL, v, 2));
}

// The largest of each of a lane's two rows.
__device__ __forceinline__ void largest_of_rows(float (*v)[4], float* largest) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = 0.f;
#pragma unroll
        for (int t = 0; t < 16; t++) most = fmaxf(most, fmaxf(fabsf(v[t][half * 2]), fabsf(v[t][half * 2 + 1])));
        largest[half] = max_over_quad(most);
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

// Both rows of a lane from an array [rows, 128]; rows beyond the last are those of the last.
__device__ __forceinline__ void load_pair(float (*v)[4], const float* in, u32 first, u32 rows, int lane) {
    u32 row = first + lane / 4;
    const float *one = in + (u64)min(row, rows - 1) * D + lane % 4 * 2, *two = in + (u64)min(row + 8, rows - 1) * D + lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < 16; t++) {
        float2 a = *(const float2*)(one + t * 8), b = *(const float2*)(two + t * 8);
        v[t][0] = a.x, v[t][1] = a.y, v[t][2] = b.x, v[t][3] = b.y;
    }
}

// Where a column lies in a row of halves, in which eight of a lane lie together: column 8 t + 2 q + e (q = lane % 4). Then four lanes write 64
// bytes in a row, and what is read back so is a left factor already.
__device__ __forceinline__ int compact_column(int column) {
    int t = column / 8, q = column % 8 / 2, e = column % 2;
    return t / 4 * 32 + q * 8 + t % 4 * 2 + e;
}

// A left factor of one half each, of 16 STEPS columns, into an array [rows, 128] of halves whose columns come in this order.
template <int STEPS>
__device__ __forceinline__ void store_left(unsigned short* out, u32 (*a)[PARTS][4], u32 first, u32 rows, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 row = first + lane / 4 + half * 8;
        uint4* own = (uint4*)(out + (u64)row * D) + lane % 4;
#pragma unroll
        for (int t = 0; t < STEPS; t += 2)
            store_if_less(row, rows, own + t * 2, make_uint4(a[t][0][half], a[t][0][2 + half], a[t + 1][0][half], a[t + 1][0][2 + half]));
    }
}

// Both rows of a lane, times a power of two, into such an array.
__device__ __forceinline__ void compact_store(unsigned short* out, float (*v)[4], u32 first, u32 rows, int lane, float scale = 1.f) {
    u32 a[8][PARTS][4];
    float both[2] = {scale, scale};
    put_rows(a, v, both);
    store_left<8>(out, a, first, rows, lane);
}

// Asks for a warp's 16 rows of an array [.., 128] whose rows lie `apart` floats apart, to be read later.
__device__ __forceinline__ void ask_for_rows(const float* first, u64 apart, int lane) {
    const float* own = first + lane / 2 * apart + lane % 2 * 64;
    prefetch(own), prefetch(own + 32);
}
