// The scratchpad's kernels against plain loops in f64, and their gradients against finite differences of those loops.
#include "kernels.hpp"

#include <cstdio>
#include <random>
#include <vector>

using namespace kernels;
using std::vector;

std::mt19937 generator(1);
int failures = 0;

vector<float> random_numbers(size_t count, float size = 1) {
    std::normal_distribution<float> normal(0, size);
    vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
}

// Networks of one size on some strings, with parameters anywhere.
struct World {
    int R, B, n;
    u64 rows = (u64)B * n, tiles = (rows + 31) / 32, P = 20000;
    vector<float> params = random_numbers(R * P, 0.3f);
    Dimensions grid = {(unsigned)(tiles + 7) / 8, (unsigned)R, 1};

    // Numbers [R, rows, D] as tiles, and back; what is beyond the rows must be 0.
    vector<float> tiled(const vector<float>& plain) const {
        vector<float> out(R * tiles * 32 * D);
        for (int r = 0; r < R; r++)
            for (u64 row = 0; row < rows; row++)
                for (int c = 0; c < D; c++) out[r * tiles * 32 * D + place_of(row, c)] = plain[(r * rows + row) * D + c];
        return out;
    }
    vector<float> plain(const vector<float>& tiled) const {
        vector<float> out(R * rows * D);
        for (int r = 0; r < R; r++)
            for (u64 row = 0; row < tiles * 32; row++)
                for (int c = 0; c < D; c++) {
                    float value = tiled[r * tiles * 32 * D + place_of(row, c)];
                    if (row < rows) out[(r * rows + row) * D + c] = value;
                }
        return out;
    }
    bool ends_in_zeros(const vector<float>& tiled) const {
        for (int r = 0; r < R; r++)
            for (u64 row = rows; row < tiles * 32; row++)
                for (int c = 0; c < D; c++)
                    if (tiled[r * tiles * 32 * D + place_of(row, c)] != 0) return false;
        return true;
    }
    vector<float> empty() const { return vector<float>(R * tiles * 32 * D); }
    vector<float> vectors() const { return random_numbers(R * rows * D); }
};

void expect(const World& w, const char* what, bool good, double off) {
    if (good) return;
    printf("R %d, B %d, n %d: %s is off by %.1e\n", w.R, w.B, w.n, what, off);
    failures++;
}

template <class A, class B>
void compare(const World& w, const char* what, const A& found, const B& expected, double tolerance) {
    double off = 0, size = 0;
    for (size_t k = 0; k < found.size(); k++) off += std::pow(found[k] - expected[k], 2), size += std::pow((double)expected[k], 2);
    off = std::sqrt(off / (size + 1e-30));
    expect(w, what, off <= tolerance && found.size() == expected.size(), off);
}

void compare_zeros(const World& w, const char* what, const vector<float>& tiled) { expect(w, what, w.ends_in_zeros(tiled), 1); }

// One row in f64.
typedef vector<double> Row;

Row row_of(const vector<float>& plain, u64 at) { return Row(plain.begin() + at * D, plain.begin() + (at + 1) * D); }

Row scaled(Row x, const float* norm) {
    for (int c = 0; c < D; c++) x[c] = x[c] * norm[c] + norm[D + c];
    return x;
}

Row affine(const Row& x, const float* weight, const float* bias) {
    Row y(D);
    for (int o = 0; o < D; o++) {
        y[o] = bias[o];
        for (int i = 0; i < D; i++) y[o] += (double)weight[o * D + i] * x[i];
    }
    return y;
}

Row normed(Row x, double* variance = nullptr) {
    double mean = 0, square = 0;
    for (double v : x) mean += v / D;
    for (double v : x) square += (v - mean) * (v - mean) / D;
    for (double& v : x) v = (v - mean) / std::sqrt(square + 1e-5);
    if (variance) *variance = square;
    return x;
}

double dot(const Row& a, const Row& b) {
    double sum = 0;
    for (int c = 0; c < D; c++) sum += a[c] * b[c];
    return sum;
}

Row moved(Row x, const Row& by, double step) {
    for (int c = 0; c < D; c++) x[c] += step * by[c];
    return x;
}

// Whether gradient [R, rows, D] is that of `value` of each row at x, along a direction of its own.
template <class Value>
void compare_gradient(const World& w, const char* what, const vector<float>& gradient, const vector<float>& x, Value value, double tolerance) {
    vector<double> found, expected;
    vector<float> directions = w.vectors();
    for (u64 at = 0; at < w.R * w.rows; at++) {
        Row along = row_of(directions, at), here = row_of(x, at);
        found.push_back(dot(row_of(gradient, at), along));
        expected.push_back((value(at, moved(here, along, 1e-5)) - value(at, moved(here, along, -1e-5))) / 2e-5);
    }
    compare(w, what, found, expected, tolerance);
}

constexpr double TF32 = 3e-3, FLOAT = 2e-6;
constexpr u64 NORM = 300, SECOND_NORM = 400, PROJECTION = 2000, OUT = 6000, LAYERS = 7500, HEAD_AT = 900;

void check_forward(const World& w) {
    const float* params = w.params.data();
    auto own = [&](u64 at) { return params + at / w.rows * w.P; };
    vector<u8> tokens(w.R * w.rows);
    for (u8& token : tokens) token = generator() % 3;
    vector<float> out = w.empty(), expected;
    launch(w.grid, THREADS, [&] { embed_rows(out.data(), tokens.data(), params, w.P, 10, 100, w.n, w.R, w.rows, w.tiles); });
    for (u64 at = 0; at < w.R * w.rows; at++)
        for (int c = 0; c < D; c++)
            expected.push_back(c < D / 2 ? own(at)[10 + tokens[at] * D / 2 + c] : own(at)[100 + at % w.rows % w.n * D / 2 + c - D / 2]);
    compare(w, "embed_rows", w.plain(out), expected, 0);

    vector<float> x = w.vectors(), attended = w.vectors(), var(w.R * w.rows), hidden = w.empty();
    vector<float> xt = w.tiled(x), at_tiles = w.tiled(attended);
    for (u64 norm : {NO_NORM, NORM}) {
        vector<vector<u32>> projected(3, vector<u32>(w.R * w.rows * D / 2));
        u16* places[3];
        for (int part = 0; part < 3; part++) places[part] = norm == NORM && part == 0 ? nullptr : (u16*)projected[part].data();
        launch(w.grid, THREADS, [&] { project_rows(places[0], places[1], places[2], xt.data(), params, w.P, norm, PROJECTION, w.n, w.rows, w.tiles); });
        vector<float> found, wanted;
        for (int part = 0; part < 3; part++)
            for (u64 at = 0; at < w.R * w.rows && places[part]; at++) {
                Row v = row_of(x, at);
                if (norm == NORM) v = scaled(v, own(at) + NORM);
                Row y = affine(v, own(at) + PROJECTION + part * D * D, own(at) + PROJECTION + 3 * D * D + part * D);
                for (int c = 0; c < D; c++) {
                    u64 place = ((at / w.n * HEADS + c / HEAD) * w.n + at % w.n) * HEAD + c % HEAD;
                    found.push_back(half_of(projected[part][place / 2], place % 2));
                    wanted.push_back(part == 0 ? y[c] * 0.25 * 1.4426950408889634 : y[c]);
                }
            }
        compare(w, "project_rows", found, wanted, TF32);
        launch(w.grid, THREADS, [&] { norm_attended(out.data(), var.data(), at_tiles.data(), xt.data(), params, w.P, norm, OUT, w.rows, w.tiles); });
        vector<double> rows, variances;
        for (u64 at = 0; at < w.R * w.rows; at++) {
            Row v = row_of(x, at);
            if (norm == NORM) v = scaled(v, own(at) + NORM);
            double variance;
            v = normed(moved(affine(row_of(attended, at), own(at) + OUT, own(at) + OUT + D * D), v, 1), &variance);
            rows.insert(rows.end(), v.begin(), v.end());
            variances.push_back(variance);
        }
        compare(w, "norm_attended", w.plain(out), rows, TF32);
        compare(w, "its variances", var, variances, TF32);
    }
    vector<double> first, fed, between, last, answers, variances[2];
    for (u64 at = 0; at < w.R * w.rows; at++) {
        Row v = scaled(row_of(x, at), own(at) + NORM), z = normed(v);
        double variance[2];
        Row f = normed(moved(affine(row_of(attended, at), own(at) + OUT, own(at) + OUT + D * D), v, 1), &variance[0]);
        Row u = scaled(f, own(at) + SECOND_NORM), h = affine(u, own(at) + LAYERS, own(at) + LAYERS + D * D);
        for (double& number : h) number = max(number, 0.);
        Row y = normed(moved(affine(h, own(at) + LAYERS + D * D + D, own(at) + LAYERS + 2 * D * D + D), u, 1), &variance[1]);
        for (auto [to, from] : {std::pair{&first, &f}, {&between, &h}, {&fed, &y}, {&last, &z}}) to->insert(to->end(), from->begin(), from->end());
        for (int norm = 0; norm < 2; norm++) variances[norm].push_back(variance[norm]);
        Row head(own(at) + HEAD_AT, own(at) + HEAD_AT + D);
        answers.push_back(dot(v, head) + own(at)[HEAD_AT + D]);
    }
    vector<float> before = w.empty(), var2(w.R * w.rows);
    for (bool keep : {true, false}) {
        out = w.empty();
        launch(w.grid, THREADS, [&] {
            norm_fed_forward(keep ? before.data() : nullptr, var.data(), keep ? hidden.data() : nullptr, out.data(), var2.data(), at_tiles.data(), xt.data(), params, w.P, NORM,
                             OUT, SECOND_NORM, LAYERS, w.rows, w.tiles);
        });
        compare(w, "norm_fed_forward", w.plain(out), fed, TF32);
        compare(w, "its first norm", w.plain(before), first, TF32);
        compare(w, "its hidden layer", w.plain(hidden), between, TF32);
        compare(w, "its first variances", var, variances[0], TF32);
        compare(w, "its second variances", var2, variances[1], TF32);
    }
    launch(w.grid, THREADS, [&] { norm_rows(out.data(), var.data(), xt.data(), params, w.P, NORM, w.rows, w.tiles); });
    compare(w, "norm_rows", w.plain(out), last, FLOAT);
    vector<float> outputs(w.R * w.rows);
    launch(w.grid, THREADS, [&] { read_out(outputs.data(), xt.data(), params, w.P, NORM, HEAD_AT, w.rows, w.tiles); });
    compare(w, "read_out", outputs, answers, FLOAT);
}

void check_backward(const World& w) {
    const float* params = w.params.data();
    auto own = [&](u64 at) { return params + at / w.rows * w.P; };
    vector<float> outputs = random_numbers(w.R * w.rows), labels(w.R * w.rows), dout = w.empty(), dx = w.empty(), dsum = w.empty(), dhidden = w.empty();
    for (float& label : labels) label = generator() % 2;
    vector<double> parts(w.R * w.grid.x), errors(w.R), expected_dy;
    launch(w.grid, THREADS, [&] { read_out_backward(dout.data(), dx.data(), parts.data(), outputs.data(), labels.data(), params, w.P, HEAD_AT, w.rows, w.tiles); });
    vector<double> sums(w.R);
    for (size_t k = 0; k < parts.size(); k++) sums[k / w.grid.x] += parts[k];
    for (u64 at = 0; at < w.R * w.rows; at++) {
        double error = outputs[at] - labels[at];
        errors[at / w.rows] += error * error;
        for (int c = 0; c < D; c++) expected_dy.push_back(2 * error * own(at)[HEAD_AT + c]);
        expect(w, "dout", w.plain(dout)[at * D] == 2 * (outputs[at] - labels[at]), 1);
    }
    compare(w, "the loss", sums, errors, 1e-6);
    compare(w, "read_out_backward", w.plain(dx), expected_dy, FLOAT);
    compare_zeros(w, "read_out_backward beyond the rows", dx);

    // The gradient of a norm's output; a feed-forward layer's input, its hidden layer, the norm's input, xhat and variances.
    vector<float> dy = w.vectors(), xhat, var, attended = w.vectors(), hidden, below = w.vectors(), summed;
    for (u64 at = 0; at < w.R * w.rows; at++) {
        Row v = row_of(below, at), h = affine(v, own(at) + LAYERS, own(at) + LAYERS + D * D);
        for (double& number : h) number = max(number, 0.);
        Row y = moved(affine(h, own(at) + LAYERS + D * D + D, own(at) + LAYERS + 2 * D * D + D), v, 1);
        double variance;
        Row z = normed(y, &variance);
        hidden.insert(hidden.end(), h.begin(), h.end()), xhat.insert(xhat.end(), z.begin(), z.end()), summed.insert(summed.end(), y.begin(), y.end());
        var.push_back(variance);
    }
    vector<float> dyt = w.tiled(dy), xt = w.tiled(xhat), ht = w.tiled(hidden), at_tiles = w.tiled(attended);
    auto after_norm = [&](u64 at, const Row& x) { return dot(scaled(normed(x), own(at) + NORM), row_of(dy, at)); };
    launch(w.grid, THREADS, [&] { norm_rows_backward(dx.data(), dyt.data(), xt.data(), var.data(), params, w.P, NORM, w.rows, w.tiles); });
    compare_gradient(w, "norm_rows_backward", w.plain(dx), summed, after_norm, 1e-5);
    launch(w.grid, THREADS, [&] {
        norm_fed_forward_backward(dx.data(), dsum.data(), dhidden.data(), dyt.data(), xt.data(), var.data(), ht.data(), params, w.P, NORM, LAYERS, w.rows, w.tiles);
    });
    auto after_layer = [&](u64 at, const Row& x) {
        Row h = affine(x, own(at) + LAYERS, own(at) + LAYERS + D * D);
        for (double& number : h) number = max(number, 0.);
        return after_norm(at, moved(affine(h, own(at) + LAYERS + D * D + D, own(at) + LAYERS + 2 * D * D + D), x, 1));
    };
    auto after_hidden = [&](u64 at, const Row& h) {
        return after_norm(at, moved(affine(h, own(at) + LAYERS + D * D + D, own(at) + LAYERS + 2 * D * D + D), row_of(below, at), 1));
    };
    compare_gradient(w, "norm_fed_forward_backward", w.plain(dx), below, after_layer, TF32);
    compare_gradient(w, "its dsum", w.plain(dsum), summed, after_norm, 1e-5);
    compare_zeros(w, "norm_fed_forward_backward beyond the rows", dx);
    vector<float> open = w.plain(dhidden);
    vector<double> none;
    for (size_t k = 0; k < open.size(); k++) if (hidden[k] == 0) none.push_back(open[k]);
    compare(w, "dhidden where the ReLU is shut", none, vector<double>(none.size()), 0);
    // Where it is open, its gradient is that of the hidden layer.
    compare_gradient(w, "dhidden", open, hidden, [&](u64 at, const Row& h) {
        Row masked = row_of(hidden, at);
        for (int c = 0; c < D; c++) if (masked[c] > 0) masked[c] = h[c];
        return after_hidden(at, masked);
    }, TF32);

    vector<float> products(w.R * w.rows * HEADS);
    vector<u32> largest(w.R);
    launch(w.grid, THREADS, [&] {
        norm_attended_backward(dsum.data(), dx.data(), products.data(), largest.data(), dyt.data(), xt.data(), var.data(), at_tiles.data(), params, w.P, NORM, OUT, w.n, w.rows, w.tiles);
    });
    compare_gradient(w, "norm_attended_backward", w.plain(dx), attended, [&](u64 at, const Row& o) {
        Row rest = moved(row_of(summed, at), affine(row_of(attended, at), own(at) + OUT, own(at) + OUT + D * D), -1);
        return after_norm(at, moved(rest, affine(o, own(at) + OUT, own(at) + OUT + D * D), 1));
    }, TF32);
    vector<float> dattended = w.plain(dx);
    vector<double> wanted(products.size());
    vector<float> most(w.R);
    for (u64 at = 0; at < w.R * w.rows; at++)
        for (int c = 0; c < D; c++) {
            wanted[(at / w.n * HEADS + c / HEAD) * w.n + at % w.n] += (double)dattended[at * D + c] * attended[at * D + c];
            most[at / w.rows] = max(most[at / w.rows], std::fabs(dattended[at * D + c]));
        }
    compare(w, "its products", products, wanted, 1e-5);
    for (int r = 0; r < w.R; r++) expect(w, "the largest", __uint_as_float(largest[r]) == most[r], 1);

    for (int which = 0; which < 3; which++) { // all of them, keys and values, queries
        vector<float> d[4] = {w.vectors(), w.vectors(), w.vectors(), w.vectors()}, t[4];
        const float* places[4];
        for (int part = 0; part < 4; part++) {
            t[part] = w.tiled(d[part]);
            bool asked = which == 0 || (which == 1) == (part == 1 || part == 2);
            places[part] = asked ? t[part].data() : nullptr;
        }
        launch(w.grid, THREADS, [&] { project_rows_backward(dx.data(), places[0], places[1], places[2], places[3], params, w.P, PROJECTION, w.rows, w.tiles); });
        vector<double> rows;
        for (u64 at = 0; at < w.R * w.rows; at++)
            for (int i = 0; i < D; i++) {
                double sum = places[3] ? d[3][at * D + i] : 0;
                for (int part = 0; part < 3; part++)
                    for (int o = 0; o < D && places[part]; o++) sum += (double)own(at)[PROJECTION + (part * D + o) * D + i] * d[part][at * D + o];
                rows.push_back(sum);
            }
        compare(w, "project_rows_backward", w.plain(dx), rows, TF32);
        compare_zeros(w, "project_rows_backward beyond the rows", dx);
    }
}

void check_sums(const World& w) {
    vector<float> dy = w.vectors(), x = w.vectors(), dyt = w.tiled(dy), xt = w.tiled(x), grads(w.R * w.P), expected(w.R * w.P);
    vector<u8> tokens(w.R * w.rows);
    for (u8& token : tokens) token = generator() % 3;
    vector<float> token_parts(w.R * 3 * D / 2 * w.n);
    launch({(unsigned)(w.n + 31) / 32, (unsigned)w.R, 2}, THREADS, [&] {
        embed_rows_backward(grads.data(), token_parts.data(), dyt.data(), tokens.data(), w.P, 100, w.n, w.B, w.tiles, w.R, 0.5f);
    });
    launch({(3 * D / 2 + 7) / 8, (unsigned)w.R, 1}, THREADS, [&] { token_gradients(grads.data(), token_parts.data(), w.P, 10, w.n, 3); });
    for (u64 at = 0; at < w.R * w.rows; at++)
        for (int c = 0; c < D; c++) {
            u64 place = c < D / 2 ? 10 + tokens[at] * D / 2 + c : 100 + at % w.rows % w.n * D / 2 + c - D / 2;
            expected[at / w.rows * w.P + place] += 0.5f * dy[at * D + c];
        }
    compare(w, "gradients of embeddings", grads, expected, 1e-5);

    Job jobs[5] = {{dyt.data(), xt.data(), NO_NORM, 1000, 5000, 0}, {dyt.data(), xt.data(), NORM, 9000, 12000, 0},
                   {dyt.data(), xt.data(), NO_NORM, 13000, 13100, 1}, {dyt.data(), xt.data(), NORM, 14000, 14100, 2},
                   {dyt.data(), xt.data(), NO_NORM, 15000, 16100, 3}};
    for (unsigned count : {1u, 3u}) {
        vector<float> parts(w.R * 5 * count * SUMS), found(w.R * w.P), wanted(w.R * w.P);
        launch({count, 5, (unsigned)w.R}, 128, [&] { weight_gradients(parts.data(), jobs, w.tiles); });
        launch({5, (unsigned)w.R, 1}, THREADS, [&] { gather_gradients(found.data(), parts.data(), jobs, w.params.data(), w.P, count, 0.01f); });
        for (int r = 0; r < w.R; r++)
            for (int o = 0; o < D; o++) {
                const float* norm = &w.params[r * w.P + NORM];
                float* to = &wanted[r * w.P];
                double bias = 0;
                for (u64 row = 0; row < w.rows; row++) bias += 0.01 * dy[(r * w.rows + row) * D + o];
                to[5000 + o] = to[12000 + o] = to[13100 + o] = bias;
                if (o == 0) to[14100] = bias;
                for (int i = 0; i < D; i++) {
                    double sum = 0;
                    for (u64 row = 0; row < w.rows; row++) sum += 0.01 * dy[(r * w.rows + row) * D + o] * x[(r * w.rows + row) * D + i];
                    to[1000 + o * D + i] = to[15000 + o * D + i] = sum;
                    to[9000 + o * D + i] = sum * norm[i] + bias * norm[D + i];
                    if (o == i) to[13000 + i] = sum;
                    if (o == 0) to[14000 + i] = sum * norm[i] + bias * norm[D + i];
                }
            }
        compare(w, "weight_gradients", found, wanted, TF32);
    }
}

// What one head of one string attends to [n, HEAD], from queries in powers of two.
vector<double> attention(const vector<double>& q, const vector<double>& k, const vector<double>& v, int n, bool causal) {
    vector<double> out(n * HEAD);
    for (int i = 0; i < n; i++) {
        double all = 0;
        for (int j = 0; j < (causal ? i + 1 : n); j++) {
            double score = 0;
            for (int c = 0; c < HEAD; c++) score += q[i * HEAD + c] * k[j * HEAD + c];
            double weight = std::exp2(score);
            all += weight;
            for (int c = 0; c < HEAD; c++) out[i * HEAD + c] += weight * v[j * HEAD + c];
        }
        for (int c = 0; c < HEAD; c++) out[i * HEAD + c] /= all;
    }
    return out;
}

// Queries of a size: large ones give weights that the nearest keys tell nothing of, and gradients that cancel.
void check_attention(const World& w, bool causal, float size) {
    // Queries, keys and values as halves, and as they then are.
    vector<u32> words[3];
    vector<double> exact[3];
    for (int part = 0; part < 3; part++)
        for (u64 k = 0; k < w.R * w.rows * D / 2; k++) {
            vector<float> two = random_numbers(2, part == 0 ? size : 1);
            words[part].push_back(halves(two[0], two[1]));
            for (int high = 0; high < 2; high++) exact[part].push_back(half_of(words[part].back(), high));
        }
    vector<float> out = w.empty(), logs(w.R * w.rows * HEADS);
    Dimensions grid = {(unsigned)w.B * HEADS, (unsigned)w.R, 1};
    const u16 *q = (u16*)words[0].data(), *k = (u16*)words[1].data(), *v = (u16*)words[2].data();
    launch(grid, min(THREADS, (w.n + 31) / 32 * 32), [&] { attend_rows(out.data(), logs.data(), q, k, v, w.n, causal, w.rows, w.tiles); });
    compare_zeros(w, "attend_rows beyond the rows", out);
    vector<float> attended = w.plain(out), dattended = random_numbers(w.R * w.rows * D, 1e-5f), products(w.R * w.rows * HEADS);
    vector<u32> largest(w.R);
    for (u64 at = 0; at < w.R * w.rows * D; at++) {
        u64 row = at / D, place = (row / w.n * HEADS + at % D / HEAD) * w.n + row % w.n;
        products[place] += dattended[at] * attended[at];
        largest[row / w.rows] = max(largest[row / w.rows], __float_as_uint(std::fabs(dattended[at])));
    }
    vector<float> dq = w.empty(), dk = w.empty(), dv = w.empty(), dt = w.tiled(dattended);
    launch(grid, 32 * min(16, (w.n + 31) / 32), [&] {
        attend_rows_backward(dq.data(), dk.data(), dv.data(), dt.data(), products.data(), largest.data(), logs.data(), q, k, v, w.n, causal, w.rows, w.tiles);
    });
    vector<float> gradients[3] = {w.plain(dq), w.plain(dk), w.plain(dv)};
    vector<double> found, expected, slopes[3], differences[3];
    for (int string = 0; string < w.R * w.B; string++)
        for (int h = 0; h < HEADS; h++) {
            vector<double> own[3];
            for (int part = 0; part < 3; part++) {
                auto begin = exact[part].begin() + ((u64)string * HEADS + h) * w.n * HEAD;
                own[part].assign(begin, begin + w.n * HEAD);
            }
            vector<double> result = attention(own[0], own[1], own[2], w.n, causal);
            auto at = [&](int i, int c) { return ((u64)string * w.n + i) * D + h * HEAD + c; };
            for (int i = 0; i < w.n; i++)
                for (int c = 0; c < HEAD; c++) found.push_back(attended[at(i, c)]), expected.push_back(result[i * HEAD + c]);
            for (int part = 0; part < 3; part++) {
                vector<float> along = random_numbers(w.n * HEAD);
                auto value = [&](double step) {
                    vector<double> there[3] = {own[0], own[1], own[2]};
                    // The gradient of queries is that before they were scaled.
                    for (int k = 0; k < w.n * HEAD; k++) there[part][k] += step * along[k] * (part == 0 ? 0.25 * 1.4426950408889634 : 1);
                    vector<double> result = attention(there[0], there[1], there[2], w.n, causal);
                    double sum = 0;
                    for (int i = 0; i < w.n; i++)
                        for (int c = 0; c < HEAD; c++) sum += result[i * HEAD + c] * dattended[at(i, c)];
                    return sum;
                };
                double slope = 0;
                for (int i = 0; i < w.n; i++)
                    for (int c = 0; c < HEAD; c++) slope += (double)gradients[part][at(i, c)] * along[i * HEAD + c];
                slopes[part].push_back(slope), differences[part].push_back((value(1e-4) - value(-1e-4)) / 2e-4);
            }
        }
    compare(w, "attend_rows", found, expected, TF32);
    const char* names[3] = {"dqueries", "dkeys", "dvalues"};
    for (int part = 0; part < 3; part++) compare(w, names[part], slopes[part], differences[part], size > 1 ? 2e-2 : TF32);
}

int main() {
    // Tiles that are full and not, several replicas, one warp and all of them, and more keys than they have at once.
    for (World w : {World{2, 5, 21}, World{1, 3, 70}, World{1, 2, 5}, World{3, 16, 2}, World{1, 1, 545}}) {
        check_forward(w), check_backward(w), check_sums(w);
        // Fewer blocks than tiles: a warp does several.
        w.grid.x = 1;
        check_forward(w);
        for (bool causal : {false, true}) check_attention(w, causal, 0.7f);
    }
    for (World w : {World{1, 3, 70}, World{1, 2, 5}, World{1, 1, 545}})
        for (bool causal : {false, true}) check_attention(w, causal, 6);
    printf(failures ? "%d numbers of the scratchpad's kernels are wrong\n" : "the scratchpad's kernels compute what loops in f64 do\n", failures);
    return failures > 0;
}
