// Attention of one head of one string by a block, on tensor cores: factors are halves, which have TF32's digits, sums are floats. No weight is stored.

#define ENDLESS __uint_as_float(0x7f800000u)

// A factor's rows of 16 halves in shared memory: two pieces of 16 bytes, which change places every four rows, so that eight rows of one piece lie in
// different banks.
__device__ __forceinline__ u32 piece_at(int row, int piece) { return row * 32 + (piece ^ (row >> 2 & 1)) * 16; }

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
