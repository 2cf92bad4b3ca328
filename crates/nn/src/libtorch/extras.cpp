// What the crate tch leaves out of LibTorch: recorded GPU work (CUDA graphs), optimisers as one kernel, and products in TF32.
//
// Every function gives null, or what went wrong as a string that `pudica_free_text` frees: no exception leaves C++.

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#ifdef PUDICA_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace {

template <class Body> char *guarded(Body body) {
  try {
    body();
    return nullptr;
  } catch (const c10::Error &error) {
    return strdup(error.what_without_backtrace());
  } catch (const std::exception &error) {
    return strdup(error.what());
  } catch (...) {
    return strdup("unknown error");
  }
}

#ifdef PUDICA_CUDA
struct Graph {
  at::cuda::CUDAGraph graph;
  // Where this thread's work went before; while it records, it goes to a stream of its own, as CUDA demands.
  c10::cuda::CUDAStream before = c10::cuda::getCurrentCUDAStream(0);
};
#endif

} // namespace

extern "C" {

void pudica_free_text(char *text) { std::free(text); }

// Whether factors of f32 matrix products on a GPU are rounded to TF32.
char *pudica_products_in_tf32(bool rounded) {
  return guarded([&] { at::globalContext().setAllowTF32CuBLAS(rounded); });
}

// SGD in place; `velocity` may be null; `lr` is a tensor of one number.
char *pudica_sgd(at::Tensor *weights, at::Tensor *gradient, at::Tensor *velocity, at::Tensor *lr, double momentum,
                 double weight_decay) {
  return guarded([&] {
    c10::AutoGradMode no_history(false);
    std::vector<at::Tensor> velocities;
    if (velocity)
      velocities.push_back(*velocity);
    at::_fused_sgd_({*weights}, {*gradient}, velocities, weight_decay, momentum, *lr, 0.0, false, false, false);
  });
}

// Adam, or with `decoupled` AdamW, in place; `lr` and `step` are tensors of one number.
char *pudica_adam(at::Tensor *weights, at::Tensor *gradient, at::Tensor *first, at::Tensor *second, at::Tensor *lr,
                  at::Tensor *step, double beta1, double beta2, double eps, double weight_decay, bool decoupled) {
  return guarded([&] {
    c10::AutoGradMode no_history(false);
    auto update = [&](auto function) {
      function({*weights}, {*gradient}, {*first}, {*second}, {}, {*step}, *lr, beta1, beta2, weight_decay, eps, false,
               false, std::nullopt, std::nullopt);
    };
    using Lists = at::TensorList;
    using Maybe = const std::optional<at::Tensor> &;
    using Function = void (*)(Lists, Lists, Lists, Lists, Lists, Lists, const at::Tensor &, double, double, double,
                              double, bool, bool, Maybe, Maybe);
    update(decoupled ? static_cast<Function>(at::_fused_adamw_) : static_cast<Function>(at::_fused_adam_));
  });
}

#ifdef PUDICA_CUDA

// Begins to record this thread's work on the first GPU instead of doing it. What is recorded shares its memory with `shared`, if there is one:
// at most one of the two is at work at any time.
char *pudica_graph_begin(Graph **made, Graph *shared) {
  *made = nullptr;
  return guarded([&] {
    static const auto own = c10::cuda::getStreamFromPool(false, 0);
    auto graph = std::make_unique<Graph>();
    c10::cuda::device_synchronize();
    c10::cuda::setCurrentCUDAStream(own);
    try {
      // Other threads may meanwhile do as they like, allocate memory above all.
      graph->graph.capture_begin(shared ? shared->graph.pool() : c10::cuda::MempoolId_t{0, 0},
                                 cudaStreamCaptureModeThreadLocal);
    } catch (...) {
      c10::cuda::setCurrentCUDAStream(graph->before);
      throw;
    }
    *made = graph.release();
  });
}

// Ends recording; also where the work that was recorded failed.
char *pudica_graph_end(Graph *graph) {
  char *problem = guarded([&] { graph->graph.capture_end(); });
  c10::cuda::setCurrentCUDAStream(graph->before);
  return problem;
}

// Does what was recorded.
char *pudica_graph_replay(Graph *graph) {
  return guarded([&] { graph->graph.replay(); });
}

void pudica_graph_free(Graph *graph) {
  std::free(guarded([&] { delete graph; }));
}

#else

struct Graph;
static char *no_cuda() { return strdup("built on a PyTorch without CUDA"); }
char *pudica_graph_begin(Graph **made, Graph *) {
  *made = nullptr;
  return no_cuda();
}
char *pudica_graph_end(Graph *) { return no_cuda(); }
char *pudica_graph_replay(Graph *) { return no_cuda(); }
void pudica_graph_free(Graph *) {}

#endif
}
