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
