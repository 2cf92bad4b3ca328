// The kernels of last_attention.cu for a layer below whose xhat is kept as halves (compact_store), under names of their own.

#define ROWS_ARE_HALVES
#define scale_shift scale_shift_halves
#define attend_last attend_last_halves
#define attend_last_backward attend_last_backward_halves
#define attend_last_direct attend_last_direct_halves

typedef unsigned short kept_number;

__device__ __forceinline__ number number_at(const unsigned short* row, int c) {
    return from_half(row[compact_column(c)]);
}

// A lane has the four columns whose halves lie together: this one, the next, and both 8 further on.
__device__ __forceinline__ int own_column(int lane) {
    return lane / 8 * 32 + lane % 2 * 16 + lane % 8 / 2 * 2;
}

__device__ __forceinline__ void load_row(number* v, const unsigned short* row, int lane) {
    uint2 four = ((const uint2*)row)[lane];
    v[0] = from_half((unsigned short)four.x), v[1] = from_half((unsigned short)(four.x >> 16));
    v[2] = from_half((unsigned short)four.y), v[3] = from_half((unsigned short)(four.y >> 16));
}

__device__ __forceinline__ void load_row(number* v, const number* row, int lane) {
    float2 low = *(const float2*)(row + own_column(lane)), high = *(const float2*)(row + own_column(lane) + 8);
    v[0] = low.x, v[1] = low.y, v[2] = high.x, v[3] = high.y;
}

__device__ __forceinline__ void store_row(number* row, const number* v, int lane) {
    *(float2*)(row + own_column(lane)) = make_float2(v[0], v[1]);
    *(float2*)(row + own_column(lane) + 8) = make_float2(v[2], v[3]);
}

