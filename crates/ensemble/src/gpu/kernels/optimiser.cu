// AdamW as torch.optim.AdamW computes it: scalars in f64, then f32 without contraction. Weights and moments are f32 whatever networks are
// computed in; a gradient in f64 is rounded first.

// scalars [R, 8] for step *step + 1, from settings [R, 5]: lr, beta1, beta2, eps, weight decay.
extern "C" __global__ void step_scalars(float* scalars, const double* settings, const u64* step, int R) {
    int r = blockIdx.x * THREADS + threadIdx.x;
    if (r >= R) return;
    const double* s = settings + 5 * r;
    double lr = s[0], beta1 = s[1], beta2 = s[2], now = (double)(*step + 1);
    float* out = scalars + 8 * r;
    out[0] = (float)(1. - lr * s[4]);
    out[1] = (float)(lr / (1. - pow(beta1, now)));
    out[2] = (float)sqrt(1. - pow(beta2, now));
    out[3] = (float)(1. - beta1);
    out[4] = (float)beta2;
    out[5] = (float)(1. - beta2);
    out[6] = (float)s[3];
}

// wide [size]: weights as they are computed with, where that is not as floats.
extern "C" __global__ void widen(number* wide, const float* weights, u64 size) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (k < size) wide[k] = weights[k];
}

// Replicas' numbers [R] of count from x on, P apart: 0.
extern "C" __global__ void forget(number* x, u64 P, int count) {
    int k = blockIdx.x * THREADS + threadIdx.x;
    if (k < count) x[(u64)blockIdx.y * P + k] = 0.f;
}

extern "C" __global__ void adamw(float* params, float* first, float* second, const number* grads, const float* scalars, u64 P) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x, r = blockIdx.y, at = r * P + k;
    if (k >= P) return;
    const float* s = scalars + 8 * r;
    float g = grads[at], m = first[at], v = second[at];
    m = __fadd_rn(m, __fmul_rn(s[3], __fsub_rn(g, m)));
    v = __fadd_rn(__fmul_rn(s[4], v), __fmul_rn(__fmul_rn(s[5], g), g));
    float root = __fadd_rn(__fdiv_rn(__fsqrt_rn(v), s[2]), s[6]);
    params[at] = __fsub_rn(__fmul_rn(params[at], s[0]), __fmul_rn(s[1], __fdiv_rn(m, root)));
    first[at] = m;
    second[at] = v;
}

extern "C" __global__ void next_step(u64* step) { *step += 1; }

// scores [R, 3]: mean squared error against labels [sets, B], the part of outputs on the label's side of 1/2, and the mean squared
// distance from base [sets, B] where given. One block a replica.
extern "C" __global__ void score(double* scores, const number* out, const float* labels, const number* base, int B, int sets) {
    int r = blockIdx.y;
    double error = 0., right = 0., shift = 0.;
    for (int b = threadIdx.x; b < B; b += THREADS) {
        number o = out[(u64)r * B + b], y = labels[(u64)(r % sets) * B + b];
        double e = o - y, s = base ? o - base[(u64)(r % sets) * B + b] : 0.f;
        error += e * e;
        shift += s * s;
        right += (o > 0.5f) == (y > 0.5f);
    }
    error = sum_over_block(error);
    right = sum_over_block(right);
    shift = sum_over_block(shift);
    if (threadIdx.x == 0) scores[3 * r] = error / B, scores[3 * r + 1] = right / B, scores[3 * r + 2] = shift / B;
}
