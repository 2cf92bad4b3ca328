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
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(a[0][q]) : "f"(high), "f"(low));
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
    for (int k = threadIdx.x * 8; k < size; k += blockDim.x * 8) {
        u32 at = (u32)__cvta_generic_to_shared(to + k);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from + k));
    }
}

__device__ __forceinline__ void wait_for_images() {
    asm volatile("cp.async.wait_all;" ::: "memory");
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads them by another way
#endif
    __syncthreads();
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Hopper: four warps together multiply 64 rows with a factor that they read once, while they go on.
#define FOUR(c, t) "+f"(c[t][0]), "+f"(c[t][1]), "+f"(c[t][2]), "+f"(c[t][3])
#define THIRTY_TWO(c, t) FOUR(c, t), FOUR(c, t + 1), FOUR(c, t + 2), FOUR(c, t + 3), FOUR(c, t + 4), FOUR(c, t + 5), FOUR(c, t + 6), FOUR(c, t + 7)

// c [16 rows, 8 TILES] += a [16 rows, 16] times a factor.
template <int TILES>
__device__ __forceinline__ void multiply_add(float (*c)[4], const u32* a, u32 address) {
    // Where it lies in units of 16 bytes; 1024 bytes from eight rows to the next; the swizzle.
    u64 factor = (u64)(address >> 4 & 0x3fff) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62;
    if constexpr (TILES == 16)
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
            "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "
            "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
            : THIRTY_TWO(c, 0), THIRTY_TWO(c, 8)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(factor));
    else
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
            "%26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
            : THIRTY_TWO(c, 0)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(factor));
}

// Before the first step of a product, whose factors and sums are then not to be touched, and after the last. The compiler is told of the
// sums, lest it makes them only when steps are under way.
template <int TILES>
__device__ __forceinline__ void settle(float (*c)[4]) {
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int k = 0; k < 4; k++) asm volatile("" : "+f"(c[t][k])::"memory");
}
template <int TILES = 16>
__device__ __forceinline__ void begin_product(float (*c)[4]) {
    settle<TILES>(c);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <int TILES = 16>
__device__ __forceinline__ void end_product(float (*c)[4]) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
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

__device__ __forceinline__ void load_four(u32* v, u32 address) {
    asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
        : "r"(address));
}

__device__ __forceinline__ void multiply_add(float* c, const u32* a, const u32* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c [16 rows, 8 TILES] += a [16 rows, columns k .. k + 15] times those columns of a right factor, of which the rows from `first` on are read.
template <int TILES = 16>
__device__ __forceinline__ void product_step(float (*c)[4], u32 (*a)[4], u32 matrix, int pitch, int k, int lane, int first = 0) {
    u32 own = matrix + k / 64 * (2 * 128 * 64) + 128 * (first + lane / 16 * 8 + lane % 8) + 16 * ((k / 8 + lane / 8 % 2 ^ lane) % 8);
#pragma unroll
    for (int t = 0; t < TILES; t += 4) {
        u32 b[8];
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            load_four(b, own + 2 * (part * 128 * pitch + t * 8 * 64));
            load_four(b + 4, own + 2 * (part * 128 * pitch + (t * 8 + 16) * 64));
#pragma unroll
            for (int left = 0; left < PARTS - part; left++)
#pragma unroll
                for (int s = 0; s < 4; s++) multiply_add(c[t + s], a[left], b + 2 * s);
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
            // With a branch in its place the compiler finds too few registers for products that run side by side (C7512).
            asm volatile("{ .reg .pred there; setp.lt.u32 there, %0, %1; @there st.global.v4.b32 [%2], {%3, %4, %5, %6}; }" ::"r"(row), "r"(rows),
                         "l"(own + t * 2), "r"(a[t][0][half]), "r"(a[t][0][2 + half]), "r"(a[t + 1][0][half]), "r"(a[t + 1][0][2 + half])
                         : "memory");
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
    asm volatile("prefetch.global.L2 [%0];" ::"l"(own));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(own + 32));
}
