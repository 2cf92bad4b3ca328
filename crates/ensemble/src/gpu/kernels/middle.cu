// Attention of the layers between the first and the last, computed plainly: rows of n scores.

// P [rows, n], in place: softmax of each row. One warp a row.
extern "C" __global__ void softmax(number* scores, u64 rows, int n) {
    u64 row = (u64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    number *own = scores + row * n, largest = -3.4e38f, sum = 0.f;
    for (int j = lane; j < n; j += 32) largest = fmax(largest, own[j]);
    largest = max_over_warp(largest);
    for (int j = lane; j < n; j += 32) sum += exp(own[j] - largest);
    sum = 1.f / sum_over_warp(sum);
    for (int j = lane; j < n; j += 32) own[j] = exp(own[j] - largest) * sum;
}

// dP [rows, n], in place: the gradient of the scores.
extern "C" __global__ void softmax_backward(number* g, const number* p, u64 rows, int n) {
    u64 row = (u64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    number dot = 0.f;
    for (int j = lane; j < n; j += 32) dot += g[row * n + j] * p[row * n + j];
    dot = sum_over_warp(dot);
    for (int j = lane; j < n; j += 32) g[row * n + j] = p[row * n + j] * (g[row * n + j] - dot);
}
