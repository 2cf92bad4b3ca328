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

// What the blocks of a kernel of the way back add up for parameters.
struct Parts {
    const World& w;
    vector<float> parts = vector<float>(w.R * w.grid.x * w.P);

    // The sums of D columns, or of a matrix [D, D], at a place.
    void compare_with(const char* what, u64 place, const vector<double>& expected, double tolerance) const {
        u64 each = expected.size() / w.R;
        vector<float> found(w.R * w.P);
        launch({(unsigned)(w.P / THREADS + 1), (unsigned)w.R, 1}, THREADS, [&] { gather_gradients(found.data(), parts.data(), w.P, place, place + each, w.grid.x, 0.5f); });
        vector<double> own;
        for (int r = 0; r < w.R; r++)
            for (u64 k = 0; k < each; k++) own.push_back(2. * found[r * w.P + place + k]);
        compare(w, what, own, expected, tolerance);
    }

    // Those of a linear layer from its gradient and input, both by row.
    void compare_layer(const char* what, u64 weight, u64 bias, const vector<Row>& dy, const vector<Row>& x, bool cancels = false) const {
        vector<double> weights(w.R * D * D), biases(w.R * D);
        for (u64 at = 0; at < w.R * w.rows; at++)
            for (int o = 0; o < D; o++) {
                if (!cancels) biases[at / w.rows * D + o] += dy[at][o];
                for (int i = 0; i < D; i++) weights[(at / w.rows * D + o) * D + i] += dy[at][o] * x[at][i];
            }
        compare_with(what, weight, weights, TF32), compare_with(what, bias, biases, TF32);
    }

    // Those of a norm from its output's gradient and its output before scale and shift.
    void compare_norm(const char* what, u64 place, const vector<Row>& dy, const vector<Row>& xhat) const {
        vector<double> sums(w.R * 2 * D);
        for (u64 at = 0; at < w.R * w.rows; at++)
            for (int c = 0; c < D; c++) sums[at / w.rows * 2 * D + c] += dy[at][c] * xhat[at][c], sums[at / w.rows * 2 * D + D + c] += dy[at][c];
        compare_with(what, place, sums, 1e-5);
    }
};

vector<Row> all_rows(const vector<float>& plain) {
    vector<Row> rows;
    for (u64 at = 0; at < plain.size() / D; at++) rows.push_back(row_of(plain, at));
    return rows;
}

vector<float> all_numbers(const vector<Row>& rows) {
    vector<float> numbers;
    for (const Row& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
    return numbers;
}

// The gradient before a norm, from that after it.
Row through_norm(const Row& dy, const Row& xhat, double variance, const float* norm) {
    double mean = 0, along = 0;
    Row out(D);
    for (int c = 0; c < D; c++) mean += dy[c] * norm[c] / D, along += dy[c] * norm[c] * xhat[c] / D;
    for (int c = 0; c < D; c++) out[c] = (dy[c] * norm[c] - mean - xhat[c] * along) / std::sqrt(variance + 1e-5);
    return out;
}

// The gradient before a linear layer.
Row through_layer(const Row& dy, const float* weight) {
    Row out(D);
    for (int o = 0; o < D; o++)
        for (int i = 0; i < D; i++) out[i] += dy[o] * weight[o * D + i];
    return out;
}

void check_backward(const World& w) {
    const float* params = w.params.data();
    auto own = [&](u64 at) { return params + at / w.rows * w.P; };
    u64 all = w.R * w.rows;
    vector<float> dx = w.empty(), dsum = w.empty();

    // The gradient of a norm's output; a feed-forward layer's input, its hidden layer, the norm's input, xhat and variances.
    vector<float> dy = w.vectors(), xhat, var, attended = w.vectors(), hidden, below = w.vectors(), summed;
    vector<Row> inputs; // with scale and shift
    for (u64 at = 0; at < all; at++) {
        inputs.push_back(scaled(row_of(below, at), own(at) + SECOND_NORM));
        Row h = affine(inputs[at], own(at) + LAYERS, own(at) + LAYERS + D * D);
        for (double& number : h) number = max(number, 0.);
        Row y = moved(affine(h, own(at) + LAYERS + D * D + D, own(at) + LAYERS + 2 * D * D + D), inputs[at], 1);
        double variance;
        Row z = normed(y, &variance);
        hidden.insert(hidden.end(), h.begin(), h.end()), xhat.insert(xhat.end(), z.begin(), z.end()), summed.insert(summed.end(), y.begin(), y.end());
        var.push_back(variance);
    }
    vector<float> dyt = w.tiled(dy), xt = w.tiled(xhat), ht = w.tiled(hidden), at_tiles = w.tiled(attended), bt = w.tiled(below);
    vector<Row> before; // the norm
    for (u64 at = 0; at < all; at++) before.push_back(through_norm(row_of(dy, at), row_of(xhat, at), var[at], own(at) + NORM));

    vector<float> outputs = random_numbers(all), labels(all);
    for (float& label : labels) label = generator() % 2;
    vector<double> losses(w.R * w.grid.x), sums(w.R), errors(w.R), head(w.R * (D + 1)), expected;
    vector<Row> head_dy;
    for (u64 at = 0; at < all; at++) {
        double error = outputs[at] - labels[at];
        errors[at / w.rows] += error * error;
        Row v = scaled(row_of(xhat, at), own(at) + NORM), g(D);
        for (int c = 0; c < D; c++) g[c] = 2 * error * own(at)[HEAD_AT + c], head[at / w.rows * (D + 1) + c] += 2 * error * v[c];
        head[at / w.rows * (D + 1) + D] += 2 * error;
        head_dy.push_back(g);
        Row through = through_norm(g, row_of(xhat, at), var[at], own(at) + NORM);
        expected.insert(expected.end(), through.begin(), through.end());
    }
    Parts read{w};
    launch(w.grid, THREADS, [&] {
        read_out_backward(dx.data(), read.parts.data(), losses.data(), outputs.data(), labels.data(), xt.data(), var.data(), params, w.P, NORM, HEAD_AT, w.rows, w.tiles);
    });
    for (size_t k = 0; k < losses.size(); k++) sums[k / w.grid.x] += losses[k];
    compare(w, "the loss", sums, errors, 1e-6);
    compare(w, "read_out_backward", w.plain(dx), expected, 1e-5);
    compare_zeros(w, "read_out_backward beyond the rows", dx);
    read.compare_with("gradients of the head", HEAD_AT, head, 1e-5);
    read.compare_norm("gradients of the last norm", NORM, head_dy, all_rows(xhat));

    auto after_norm = [&](u64 at, const Row& x) { return dot(scaled(normed(x), own(at) + NORM), row_of(dy, at)); };
    Parts only{w};
    launch(w.grid, THREADS, [&] { norm_rows_backward(dx.data(), only.parts.data(), dyt.data(), xt.data(), var.data(), params, w.P, NORM, w.rows, w.tiles); });
    compare_gradient(w, "norm_rows_backward", w.plain(dx), summed, after_norm, 1e-5);
    only.compare_norm("gradients of a norm", NORM, all_rows(dy), all_rows(xhat));

    Parts fed{w};
    vector<float> flow = dyt; // there and back in one place, as in the engine
    launch(w.grid, THREADS, [&] {
        norm_fed_forward_backward(flow.data(), fed.parts.data(), flow.data(), xt.data(), var.data(), ht.data(), bt.data(), params, w.P, NORM, LAYERS, SECOND_NORM, w.rows, w.tiles);
    });
    vector<Row> dhidden;
    for (u64 at = 0; at < all; at++) {
        Row g = through_layer(before[at], own(at) + LAYERS + D * D + D);
        for (int c = 0; c < D; c++) g[c] = hidden[at * D + c] > 0 ? g[c] : 0;
        dhidden.push_back(g);
    }
    compare_gradient(w, "norm_fed_forward_backward", w.plain(flow), all_numbers(inputs), [&](u64 at, const Row& x) {
        Row h = affine(x, own(at) + LAYERS, own(at) + LAYERS + D * D);
        for (double& number : h) number = max(number, 0.);
        return after_norm(at, moved(affine(h, own(at) + LAYERS + D * D + D, own(at) + LAYERS + 2 * D * D + D), x, 1));
    }, TF32);
    compare_zeros(w, "norm_fed_forward_backward beyond the rows", flow);
    fed.compare_norm("gradients of the norm after a feed-forward layer", NORM, all_rows(dy), all_rows(xhat));
    fed.compare_layer("gradients of its first layer", LAYERS, LAYERS + D * D, dhidden, inputs);
    fed.compare_layer("gradients of its second layer", LAYERS + D * D + D, LAYERS + 2 * D * D + D, before, all_rows(hidden));

    Parts out{w};
    vector<float> products(all * HEADS);
    vector<u32> largest(w.R);
    launch(w.grid, THREADS, [&] {
        norm_attended_backward(dsum.data(), dx.data(), products.data(), largest.data(), out.parts.data(), dyt.data(), xt.data(), var.data(), at_tiles.data(), params, w.P, NORM, OUT,
                               w.n, w.rows, w.tiles);
    });
    compare_gradient(w, "norm_attended_backward", w.plain(dx), attended, [&](u64 at, const Row& o) {
        Row rest = moved(row_of(summed, at), affine(row_of(attended, at), own(at) + OUT, own(at) + OUT + D * D), -1);
        return after_norm(at, moved(rest, affine(o, own(at) + OUT, own(at) + OUT + D * D), 1));
    }, TF32);
    compare_gradient(w, "its dsum", w.plain(dsum), summed, after_norm, 1e-5);
    out.compare_norm("gradients of the norm after an attention", NORM, all_rows(dy), all_rows(xhat));
    out.compare_layer("gradients of an out-projection", OUT, OUT + D * D, before, all_rows(attended));
    vector<float> dattended = w.plain(dx);
    vector<double> wanted(products.size());
    vector<float> most(w.R);
    for (u64 at = 0; at < all; at++)
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
        Parts in{w};
        u64 norm = which == 0 ? NO_NORM : SECOND_NORM;
        launch(w.grid, THREADS, [&] {
            project_rows_backward(dx.data(), in.parts.data(), places[0], places[1], places[2], places[3], bt.data(), params, w.P, norm, PROJECTION, w.rows, w.tiles);
        });
        vector<double> rows;
        for (u64 at = 0; at < all; at++) {
            Row sum = places[3] ? row_of(d[3], at) : Row(D);
            for (int part = 0; part < 3; part++)
                if (places[part]) sum = moved(sum, through_layer(row_of(d[part], at), own(at) + PROJECTION + part * D * D), 1);
            rows.insert(rows.end(), sum.begin(), sum.end());
        }
        compare(w, "project_rows_backward", w.plain(dx), rows, TF32);
        compare_zeros(w, "project_rows_backward beyond the rows", dx);
        for (int part = 0; part < 3; part++)
            if (places[part])
                in.compare_layer("gradients of an in-projection", PROJECTION + part * D * D, PROJECTION + 3 * D * D + part * D, all_rows(d[part]),
                                 which == 0 ? all_rows(below) : inputs, part == 1);
    }
}

void check_embeddings(const World& w) {
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
    launch(grid, 32 * min(causal ? 4 : 8, (w.n + 63) / 64), [&] {
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
        check_forward(w), check_backward(w), check_embeddings(w);
        // Fewer blocks than tiles: a warp does several.
        w.grid.x = 1;
        check_forward(w), check_backward(w);
        for (bool causal : {false, true}) check_attention(w, causal, 0.7f);
    }
    for (World w : {World{1, 3, 70}, World{1, 2, 5}, World{1, 1, 545}})
        for (bool causal : {false, true}) check_attention(w, causal, 6);
    printf(failures ? "%d numbers of the scratchpad's kernels are wrong\n" : "the scratchpad's kernels compute what loops in f64 do\n", failures);
    return failures > 0;
}
