// The GPU's own instructions, a function for each: all that is written in assembler. Everything else is C++, so that kernels can be compiled for a
// processor, where EMULATED is defined and tests/kernels/emulated/instructions.hpp has these functions.
//
// `shared` names an address in shared memory, as shared_address gives it.
#ifndef EMULATED

__device__ __forceinline__ u32 shared_address(const void* p) {
    return (u32)__cvta_generic_to_shared(p);
}

// Two numbers as halves.
__device__ __forceinline__ u32 halves(float low, float high) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// What a ReLU leaves of them.
__device__ __forceinline__ u32 positive_halves(float low, float high) {
    u32 both;
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float from_half(unsigned short half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

// A number as tensor cores read it in TF32, rounded to nearest.
__device__ __forceinline__ u32 tf32(float x) {
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Asks for bytes to be copied to shared memory, and goes on. What was asked for is one group up to `end_of_copies`.
__device__ __forceinline__ void copy_16_bytes(u32 shared, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_8_bytes(u32 shared, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(from) : "memory");
}
__device__ __forceinline__ void end_of_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
// For all groups but the last.
__device__ __forceinline__ void wait_for_copies_but_one() {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

// Asks for a line of memory to be brought nearer.
__device__ __forceinline__ void prefetch(const void* line) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

// *to = four words where row < rows. With a branch in its place the compiler finds too few registers for products that run side by side (C7512).
__device__ __forceinline__ void store_if_less(u32 row, u32 rows, uint4* to, uint4 words) {
    asm volatile("{ .reg .pred there; setp.lt.u32 there, %0, %1; @there st.global.v4.b32 [%2], {%3, %4, %5, %6}; }" ::"r"(row), "r"(rows), "l"(to),
                 "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
                 : "memory");
}

// Four 8 x 8 matrices of halves, whose rows begin where the lanes say: lanes 0..7 for the first. Lane 4 g + t gets row g, columns 2 t and 2 t + 1 of
// each, or, transposed, column g, rows 2 t and 2 t + 1.
__device__ __forceinline__ void load_matrices(u32* m, u32 shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(shared));
}
__device__ __forceinline__ void load_transposed(u32* m, u32 shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(shared));
}

// An 8 x 8 matrix of halves that a warp holds as load_matrices gives it, transposed.
__device__ __forceinline__ u32 transposed(u32 m) {
    u32 out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(m));
    return out;
}

// c [16, 8] += a [16, 16] b [16, 8] of halves.
__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d = c + a b
__device__ __forceinline__ void multiply_onto(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, const float (&c)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

// c [16, 8] += a [16, 8] b [8, 8] in TF32.
__device__ __forceinline__ void multiply_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Hopper: four warps together multiply 64 rows, each warp 16 of them, and go on meanwhile. Factors in shared memory are halves in lines of 128 bytes,
// whose pieces of 16 bytes are swizzled; eight lines begin at a multiple of 1024 bytes.

// Such a factor as the instruction wants it: where it lies in units of 16 bytes, `apart` bytes from 64 of its columns to the next 64 where rows are
// summed over, 1024 bytes from eight rows to the next, the swizzle.
__device__ __forceinline__ u64 shared_factor(u32 shared, u32 apart) {
    return (u64)(shared >> 4 & 0x3fff) | (u64)(apart >> 4) << 16 | (u64)64 << 32 | (u64)1 << 62;
}

#define FOUR(c, t) "+f"(c[t][0]), "+f"(c[t][1]), "+f"(c[t][2]), "+f"(c[t][3])
#define THIRTY_TWO(c, t) FOUR(c, t), FOUR(c, t + 1), FOUR(c, t + 2), FOUR(c, t + 3), FOUR(c, t + 4), FOUR(c, t + 5), FOUR(c, t + 6), FOUR(c, t + 7)

// c [16 rows of a warp, 8 TILES] += a [16 rows, 16] b^T, with b [8 TILES, 16] in shared memory.
template <int TILES>
__device__ __forceinline__ void multiply_add(float (*c)[4], const u32* a, u32 b) {
    u64 factor = shared_factor(b, 16);
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

// c [64, 64] += a [64, 16] b^T, with b [64, 16]; both in shared memory.
__device__ __forceinline__ void multiply_rows(float (*c)[4], u32 a, u32 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
        "%26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
        : THIRTY_TWO(c, 0)
        : "l"(shared_factor(a, 16)), "l"(shared_factor(b, 16)));
}

// c [64, 128] += a^T b, with a [16, 64] and b [16, 128], both in shared memory and b's second 64 columns `apart` bytes behind its first.
__device__ __forceinline__ void multiply_columns(float (*c)[4], u32 a, u32 b, u32 apart) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
        "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "
        "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 1, 1;"
        : THIRTY_TWO(c, 0), THIRTY_TWO(c, 8)
        : "l"(shared_factor(a, apart)), "l"(shared_factor(b, apart)));
}

// What was written to shared memory is there for products to read, which they do by another way.
__device__ __forceinline__ void show_to_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Before the first step of a product, whose factors and sums are then not to be touched; after the last; and to wait for all but the last LEFT
// products that ended so.
__device__ __forceinline__ void start_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_of_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT>
__device__ __forceinline__ void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// The compiler is told that this number changes here, lest it makes a product's sums only when steps are under way.
__device__ __forceinline__ void settle(float& sum) {
    asm volatile("" : "+f"(sum)::"memory");
}
#endif

#endif
