// LayerNorm of a row that lies in a group of lanes (common.cu).

// In place: s -> xhat = (s - mean) / sqrt(var + eps); the variance is kept for the way back.
__device__ __forceinline__ void normalise(number* v, int lane, number* var) {
    number mean = 0.f, square = 0.f;
#pragma unroll
    for (int k = 0; k < PER; k++) mean += v[k];
    mean = sum_over_group(mean) / D;
#pragma unroll
    EACH(k) {
        v[k] = c < D ? v[k] - mean : 0.f;
        square += v[k] * v[k];
    }
    square = sum_over_group(square) / D;
    number factor = 1.f / sqrt(square + EPS);
#pragma unroll
    for (int k = 0; k < PER; k++) v[k] *= factor;
    *var = square;
}

// In place: the gradient of xhat -> the gradient of s.
__device__ __forceinline__ void normalise_backward(number* g, const number* xhat, number var) {
    number mean = 0.f, along = 0.f;
#pragma unroll
    for (int k = 0; k < PER; k++) {
        mean += g[k];
        along += g[k] * xhat[k];
    }
    mean = sum_over_group(mean) / D;
    along = sum_over_group(along) / D;
    number factor = 1.f / sqrt(var + EPS);
#pragma unroll
    for (int k = 0; k < PER; k++) g[k] = factor * (g[k] - mean - xhat[k] * along);
}

// The largest number of a row, without its sign, or `most` if that is larger: of this lane's columns.
__device__ __forceinline__ number largest_of_lane(number most, const number* v) {
#pragma unroll
    for (int k = 0; k < PER; k++) most = fmax(most, fabs(v[k]));
    return most;
}

// Raises a number in memory to the largest of a warp's, none of which is negative: such floats are in order as integers, too.
__device__ __forceinline__ void raise(float* most, number own) {
    own = max_over_warp(own);
    if (threadIdx.x % 32 == 0) atomicMax((int*)most, __float_as_int((float)own));
}
