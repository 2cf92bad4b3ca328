// Attention of one head of one string by a block, on tensor cores: factors are halves, which have TF32's digits, sums are floats. No weight is stored.

#define ENDLESS __uint_as_float(0x7f800000u)

// A factor's rows of 16 halves in shared memory: two pieces of 16 bytes, which change places every four rows, so that eight rows of one piece lie in
// different banks.
__device__ __forceinline__ u32 piece_at(int row, int piece) { return row * 32 + (piece ^ (row >> 2 & 1)) * 16; }

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// Four 8 x 8 matrices, whose rows begin where the lanes say: lanes 0..7 for the first. Lane 4 g + t gets row g, columns 2 t and 2 t + 1 of each, or,
// transposed, column g, rows 2 t and 2 t + 1.
__device__ __forceinline__ void load_matrices(u32 (&m)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address));
}

__device__ __forceinline__ void load_transposed(u32 (&m)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address));
}

// c [16, 8] += a [16, 16] b [16, 8]
__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same with sums that begin at c.
__device__ __forceinline__ void multiply_onto(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, const float (&c)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Rows first .. first + 15 of a matrix [n, 16] of halves as the left factor of a product; what is beyond it is 0.
__device__ __forceinline__ void load_left(u32 (&a)[4], const u16* from, int first, int n, int lane) {
    int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int row = first + g + k % 2 * 8;
        a[k] = row < n ? ((const u32*)from)[row * 8 + t + k / 2 * 4] : 0u;
    }
}

// A matrix [n, 16] of halves to shared memory, with rows of 0 up to `padded`.
__device__ __forceinline__ void stage_factor(unsigned char* to, const u16* from, int n, int padded) {
    for (int k = threadIdx.x; k < 2 * padded; k += blockDim.x) {
        int row = k / 2, piece = k % 2;
        *(uint4*)(to + piece_at(row, piece)) = row < n ? ((const uint4*)from)[k] : make_uint4(0u, 0u, 0u, 0u);
    }
}
