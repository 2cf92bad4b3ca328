// Random strings and noise: the streams of pudica_data::Stream, ChaCha with 8 rounds, computed where they are needed.

__device__ __forceinline__ void quarter(u32& a, u32& b, u32& c, u32& d) {
    a += b; d ^= a; d = d << 16 | d >> 16;
    c += d; b ^= c; b = b << 12 | b >> 20;
    a += b; d ^= a; d = d << 8 | d >> 24;
    c += d; b ^= c; b = b << 7 | b >> 25;
}

// Words 16 * block .. of the stream `stream` under `key` [8].
__device__ void chacha8(const u32* key, u64 block, u64 stream, u32* out) {
    u32 s[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, key[0], key[1], key[2], key[3], key[4], key[5], key[6],
                 key[7], (u32)block, (u32)(block >> 32), (u32)stream, (u32)(stream >> 32)};
#pragma unroll
    for (int k = 0; k < 16; k++) out[k] = s[k];
#pragma unroll
    for (int round = 0; round < 4; round++) {
        quarter(out[0], out[4], out[8], out[12]);
        quarter(out[1], out[5], out[9], out[13]);
        quarter(out[2], out[6], out[10], out[14]);
        quarter(out[3], out[7], out[11], out[15]);
        quarter(out[0], out[5], out[10], out[15]);
        quarter(out[1], out[6], out[11], out[12]);
        quarter(out[2], out[7], out[8], out[13]);
        quarter(out[3], out[4], out[9], out[14]);
    }
#pragma unroll
    for (int k = 0; k < 16; k++) out[k] += s[k];
}

// bits [R, total]: the first `total` bits of each replica's stream, as bytes. The stream number is *step, or `index`. Eight threads share the 512
// bits of a block; each computes the block and writes 64 of them.
extern "C" __global__ void draw_bits(u8* bits, const u32* keys, const u64* step, u64 index, u64 total) {
    u64 thread = (u64)blockIdx.x * THREADS + threadIdx.x, first = thread * 64;
    if (first >= total) return;
    u32 words[16], own[2] = {};
    chacha8(keys + blockIdx.y * 8, thread / 8, step ? *step : index, words);
#pragma unroll
    for (int w = 0; w < 16; w++) own[w % 2] = thread % 8 == w / 2 ? words[w] : own[w % 2]; // keeps `words` in registers
    u8* out = bits + blockIdx.y * total + first;
    if (total % 16 == 0 && first + 64 <= total) {
        // Four bits become four bytes at once.
#pragma unroll
        for (int k = 0; k < 4; k++) {
            u32 some = own[k / 2] >> k % 2 * 16, four[4];
#pragma unroll
            for (int q = 0; q < 4; q++) four[q] = (some >> 4 * q & 15u) * 0x00204081u & 0x01010101u;
            ((uint4*)out)[k] = make_uint4(four[0], four[1], four[2], four[3]);
        }
    } else
        for (int bit = 0; bit < 64; bit++)
            if (first + bit < total) out[bit] = own[bit / 32] >> bit % 32 & 1;
}

// bits [sets, B, n] as words of 32: strings [sets, B, words] by position, columns [sets, words, n] by string. A warp for 32 of each.
extern "C" __global__ void pack(u32* __restrict__ strings, u32* __restrict__ columns, const u8* __restrict__ bits, int B, int n) {
    int lane = threadIdx.x % 32, across = (n + 31) / 32, down = (B + 31) / 32, set = blockIdx.y;
    int place = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (place >= across * down) return;
    int j = place % across * 32 + lane, first = place / across * 32;
    u32 string = 0, column = 0;
#pragma unroll 16
    for (int k = 0; k < 32; k++) {
        bool one = first + k < B && j < n && bits[((u64)set * B + first + k) * n + j];
        u32 all = __ballot_sync(0xffffffffu, one);
        string = lane == k ? all : string;
        column |= (u32)one << k;
    }
    if (first + lane < B) strings[((u64)set * B + first + lane) * across + place % across] = string;
    if (j < n) columns[((u64)set * down + place / across) * n + j] = column;
}

// counts [R, 2^n]: how often each string occurs among `rows` fresh strings of n <= 20 bits.
extern "C" __global__ void count_cube(u32* counts, const u32* keys, const u64* step, int rows, int n) {
    int row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u64 first = (u64)row * n, block = first / 512;
    u32 words[16];
    chacha8(keys + blockIdx.y * 8, block, *step, words);
    u32 string = 0;
    for (int i = 0; i < n; i++) {
        u64 at = first + i;
        if (at / 512 != block) {
            block = at / 512;
            chacha8(keys + blockIdx.y * 8, block, *step, words);
        }
        u32 word = 0;
#pragma unroll
        for (int w = 0; w < 16; w++) word = at % 512 / 32 == w ? words[w] : word; // keeps `words` in registers
        string = string << 1 | (word >> at % 32 & 1);
    }
    atomicAdd(&counts[((u64)blockIdx.y << n) + string], 1u);
}

// counts [R, size]: how often each string of a training set occurs among `rows` drawn from it with replacement.
extern "C" __global__ void count_set(u32* counts, const u32* keys, const u64* step, int rows, int size) {
    int row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    u32 words[16];
    chacha8(keys + blockIdx.y * 8, row / 8, *step, words);
    u32 low = 0, high = 0;
#pragma unroll
    for (int w = 0; w < 8; w++)
        if (row % 8 == w) low = words[2 * w], high = words[2 * w + 1];
    u64 index = __umul64hi((u64)high << 32 | low, (u64)size);
    atomicAdd(&counts[(u64)blockIdx.y * size + index], 1u);
}

// labels [R, B] of bits [sets, B, n]. A replica's rule is (kind, where its data begin): 0, a value for each number of ones;
// 1, the parity of the marked bits; 2, a truth table, x_1 the most significant; 3, a value for each row of such a table; 4, an expression:
// how many steps, then each: what to do in the lowest three bits, with what in the others. Its stack is a word, the top in bit 0.
extern "C" __global__ void label(float* labels, const u8* bits, const u32* rules, const u32* data, int B, int n, int sets) {
    int b = blockIdx.x * THREADS + threadIdx.x, r = blockIdx.y;
    if (b >= B) return;
    const u8* x = bits + ((u64)(r % sets) * B + b) * n;
    u32 kind = rules[2 * r];
    const u32* own = data + rules[2 * r + 1];
    float y;
    if (kind == 0) {
        int ones = 0;
        for (int i = 0; i < n; i++) ones += x[i];
        y = __uint_as_float(own[ones]);
    } else if (kind == 1) {
        u32 parity = 0;
        for (int i = 0; i < n; i++) parity ^= x[i] & own[i];
        y = parity;
    } else if (kind < 4) {
        u32 row = 0;
        for (int i = 0; i < n; i++) row = row << 1 | x[i];
        y = kind == 2 ? (float)(own[row / 32] >> row % 32 & 1) : __uint_as_float(own[row]);
    } else {
        u64 stack = 0;
        for (u32 s = 1; s <= own[0]; s++) {
            u32 what = own[s] & 7, with = own[s] >> 3;
            u64 top = stack & 1, rest = stack >> 1;
            if (what == 0) stack = stack << 1 | x[with];
            else if (what == 1) stack = stack << 1 | with;
            else if (what == 2) stack ^= 1;
            else if (what == 3) stack = rest & (top | ~1ull);
            else if (what == 4) stack = rest ^ top;
            else if (what == 5) stack = rest | top;
            else {
                u32 ones = __popcll(stack << (64 - with));
                stack = (with == 64 ? 0 : stack >> with) << 1 | (u64)(2 * ones > with);
            }
        }
        y = stack & 1;
    }
    labels[(u64)r * B + b] = y;
}

// noisy [draws * R, P] = params [R, P] + rho * N(0, 1), but for the parameters in two ranges (the positional ones).
// keys [draws * R, 8]. One ChaCha block makes 16 normal numbers by Box and Muller.
extern "C" __global__ void shake(float* noisy, const float* params, const u32* keys, u64 index, float rho, u64 P, u64 quiet_start,
                                 u64 quiet_end, u64 also_start, u64 also_end, int R) {
    u64 block = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (block * 16 >= P) return;
    u64 replica = blockIdx.y;
    u32 words[16];
    chacha8(keys + replica * 8, block, index, words);
    const float* from = params + replica % R * P;
    float* to = noisy + replica * P;
#pragma unroll
    for (int k = 0; k < 16; k += 2) {
        float radius = sqrtf(-2.f * logf((words[k] + 0.5f) * 0x1p-32f)), sine, cosine;
        sincospif(words[k + 1] * 0x1p-31f, &sine, &cosine);
        float normal[2] = {radius * cosine, radius * sine};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u64 p = block * 16 + k + half;
            bool quiet = (p >= quiet_start && p < quiet_end) || (p >= also_start && p < also_end);
            if (p < P) to[p] = from[p] + (quiet ? 0.f : rho * normal[half]);
        }
    }
}
