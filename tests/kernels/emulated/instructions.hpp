// The functions of crates/ensemble/src/gpu/kernels/instructions.cu on a processor. What a GPU does later, copies to shared memory and Hopper's products,
// is done as late as it may be, when it is waited for, or at once, as blocks take turns: a wait that is missing shows.
#pragma once
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "cuda.hpp"

// Halves, two to a word.
inline float from_half(unsigned short bits) {
#ifdef __F16C__
    return _cvtsh_ss(bits);  // on the way to double a compiler would call a slow function
#else
    _Float16 x;
    memcpy(&x, &bits, 2);
    return (float)x;
#endif
}
inline float half_of(unsigned word, int high) { return from_half(high ? word >> 16 : word); }
inline unsigned halves(float low, float high) {
    _Float16 both[2] = {(_Float16)low, (_Float16)high};
    unsigned word;
    memcpy(&word, both, 4);
    return word;
}
inline unsigned positive_halves(float low, float high) { return halves(max(low, 0.f), max(high, 0.f)); }
inline unsigned tf32(float x) { return (__float_as_uint(x) + 0x1000u) & ~0x1fffu; }
inline float power_of_two(float x) { return exp2f(x); }
inline unsigned shared_address(const void* p) { return (unsigned)((const unsigned char*)p - dynamic_memory); }
inline void prefetch(const void*) {}
inline void store_if_less(unsigned row, unsigned rows, uint4* to, uint4 words) { if (row < rows) *to = words; }

// Whether a GPU would be quick: what is asked for is done at once, not when it is waited for.
extern bool later_at_once;

// What a thread has asked for and not waited for, in groups.
struct Later {
    std::vector<std::vector<std::function<void()>>> groups = {{}};
    void ask(std::function<void()> work) {
        if (later_at_once) work();
        else groups.back().push_back(std::move(work));
    }
    void end_group() { groups.emplace_back(); }
    // For all groups that have ended but the last few.
    void wait(size_t left) {
        size_t done = groups.size() - 1 > left ? groups.size() - 1 - left : 0;
        for (size_t k = 0; k < done; k++)
            for (auto& work : groups[k]) work();
        groups.erase(groups.begin(), groups.begin() + done);
    }
};
// Of the thread that runs; each begins with nothing.
Later& copies();
Later& products();

inline void copy_16_bytes(unsigned shared, const void* from) { copies().ask([=] { memcpy(dynamic_memory + shared, from, 16); }); }
inline void copy_8_bytes(unsigned shared, const void* from) { copies().ask([=] { memcpy(dynamic_memory + shared, from, 8); }); }
inline void end_of_copies() { copies().end_group(); }
inline void wait_for_copies() { end_of_copies(), copies().wait(0); }
inline void wait_for_copies_but_one() { copies().wait(1); }

// ldmatrix, of four matrices of 8 rows of 16 bytes: the lanes 8 q .. 8 q + 7 say where the rows of matrix q begin.
inline void load_matrices(unsigned* m, unsigned address) {
    together({address}, [&] {
        for (int q = 0; q < 4; q++) memcpy(&m[q], dynamic_memory + shown_by(8 * q + lane_here() / 4).words[0] + lane_here() % 4 * 4, 4);
        return 0;
    });
}
inline void load_transposed(unsigned* m, unsigned address) {
    together({address}, [&] {
        for (int q = 0; q < 4; q++) {
            uint16_t two[2];
            for (int k = 0; k < 2; k++) memcpy(&two[k], dynamic_memory + shown_by(8 * q + lane_here() % 4 * 2 + k).words[0] + lane_here() / 4 * 2, 2);
            m[q] = two[0] | (unsigned)two[1] << 16;
        }
        return 0;
    });
}
// movmatrix
inline unsigned transposed(unsigned word) {
    return together({word}, [] {
        auto at = [](int row, int column) { unsigned word = shown_by(4 * row + column / 2).words[0]; return column % 2 ? word >> 16 : word & 0xffff; };
        int g = lane_here() / 4, t = lane_here() % 4;
        return at(2 * t, g) | at(2 * t + 1, g) << 16;
    });
}

// A lane's two rows of a left factor [16, 16] that its warp shows.
struct Rows {
    float row[2][16];
    Rows() {
        for (int half = 0; half < 2; half++)
            for (int k = 0; k < 16; k++) row[half][k] = half_of(shown_by(lane_here() / 4 * 4 + k % 8 / 2).words[half + k / 8 * 2], k % 2);
    }
};
// A lane's four sums of a tile of 8 columns: what they begin with, and the products of its rows and columns right(k, column).
template <class Right>
void add_products(float (&d)[4], const Rows& left, const float (&c)[4], Right right) {
    for (int column = 0; column < 2; column++) {
        float of_column[16];
        for (int k = 0; k < 16; k++) of_column[k] = right(k, lane_here() % 4 * 2 + column);
        for (int row = 0; row < 2; row++) {
            double sum = c[2 * row + column];
            for (int k = 0; k < 16; k++) sum += (double)left.row[row][k] * of_column[k];
            d[2 * row + column] = sum;
        }
    }
}

// mma.m16n8k16 of halves
inline void multiply_onto(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, const float (&c)[4]) {
    float begin[4] = {c[0], c[1], c[2], c[3]};
    together({a[0], a[1], a[2], a[3], b0, b1}, [&] {
        add_products(d, Rows(), begin, [](int k, int column) { return half_of(shown_by(column * 4 + k % 8 / 2).words[4 + k / 8], k % 2); });
        return 0;
    });
}
inline void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { multiply_onto(c, a, b0, b1, c); }
// mma.m16n8k8 in TF32
inline void multiply_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    together({a[0], a[1], a[2], a[3], b0, b1}, [&] {
        auto left = [](int row, int k) { return __uint_as_float(shown_by(row % 8 * 4 + k % 4).words[row / 8 + k / 4 * 2]); };
        auto right = [](int k, int column) { return __uint_as_float(shown_by(column * 4 + k % 4).words[4 + k / 4]); };
        for (int e = 0; e < 4; e++) {
            double sum = c[e];
            for (int k = 0; k < 8; k++) sum += (double)left(lane_here() / 4 + e / 2 * 8, k) * right(k, lane_here() % 4 * 2 + e % 2);
            c[e] = sum;
        }
        return 0;
    });
}

// Hopper's products (wgmma) of factors in shared memory: lines of 128 bytes, eight of them to 1024, whose pieces of 16 bytes change places with the line.
inline float swizzled(unsigned address) {
    uint16_t bits;
    memcpy(&bits, dynamic_memory + (address ^ (address >> 7 & 7) << 4), 2);
    return from_half(bits);
}
// Number k of a line whose numbers are multiplied, and of lines that are.
inline float along_line(unsigned factor, int line, int k) { return swizzled(factor + line * 128 + k * 2); }
inline float across_lines(unsigned factor, unsigned apart, int column, int k) { return swizzled(factor + column / 64 * apart + k * 128 + column % 64 * 2); }
// The first of a warp's rows among the 64 of its four warps.
inline int first_row() { return current_thread() / 32 % 4 * 16; }

template <int TILES>
void multiply_add(float (*c)[4], const unsigned* a, unsigned b) {
    unsigned own[4] = {a[0], a[1], a[2], a[3]};
    products().ask([=] {
        together({own[0], own[1], own[2], own[3]}, [&] {
            Rows left;
            for (int t = 0; t < TILES; t++) add_products(c[t], left, c[t], [=](int k, int column) { return along_line(b, 8 * t + column, k); });
            return 0;
        });
    });
}
inline void multiply_rows(float (*c)[4], unsigned a, unsigned b) {
    products().ask([=] {
        Rows left;
        for (int half = 0; half < 2; half++)
            for (int k = 0; k < 16; k++) left.row[half][k] = along_line(a, first_row() + lane_here() / 4 + half * 8, k);
        for (int t = 0; t < 8; t++) add_products(c[t], left, c[t], [=](int k, int column) { return along_line(b, 8 * t + column, k); });
    });
}
inline void multiply_columns(float (*c)[4], unsigned a, unsigned b, unsigned apart) {
    products().ask([=] {
        Rows left;
        for (int half = 0; half < 2; half++)
            for (int k = 0; k < 16; k++) left.row[half][k] = across_lines(a, apart, first_row() + lane_here() / 4 + half * 8, k);
        for (int t = 0; t < 16; t++) add_products(c[t], left, c[t], [=](int k, int column) { return across_lines(b, apart, 8 * t + column, k); });
    });
}
inline void show_to_products() {}
inline void start_products() {}
inline void end_of_products() { products().end_group(); }
template <int LEFT>
void wait_for_products() { products().wait(LEFT); }
inline void settle(float&) {}
