// What a process asks LibTorch for, whatever language it is written in. Loaded before the process:
//
//     T=$(python3 -c "import torch, os; print(os.path.dirname(torch.__file__))")
//     g++ -std=c++17 -O1 -fPIC -shared profile.cpp -o /tmp/libprofile.so -I$T/include -I$T/include/torch/csrc/api/include -L$T/lib -ltorch_cpu -lc10
//     LD_PRELOAD=/tmp/libprofile.so OPERATIONS=calls.txt pudica-bench-classifiers torch resnet18
//     LD_PRELOAD=/tmp/libprofile.so KERNELS=trace.json AFTER=4 SECONDS_LONG=0.3 pudica-bench-classifiers cuda resnet18 resnet18 resnet18
//     python3 kernels.py trace.json
//
// OPERATIONS: a file for the number of calls of each operation, written at the end. KERNELS: a file for the GPU's kernels (a Chrome trace, by Kineto),
// recorded for SECONDS_LONG from AFTER seconds on.
#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

using namespace torch::autograd::profiler;
using namespace torch::profiler::impl;

static std::map<std::string, long> calls;
static std::mutex turn;

static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& operation) {
    std::lock_guard<std::mutex> guard(turn);
    calls[operation.name()]++;
    return nullptr;
}

static void wait_for(const char* name, double otherwise) {
    const char* seconds = getenv(name);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds ? atof(seconds) : otherwise));
}

static void record_kernels() {
    wait_for("AFTER", 4);
    std::set<ActivityType> what{ActivityType::CPU, ActivityType::CUDA};
    ProfilerConfig how(ProfilerState::KINETO);
    prepareProfiler(how, what);
    enableProfiler(how, what);
    wait_for("SECONDS_LONG", 0.3);
    disableProfiler()->save(getenv("KERNELS"));
}

static struct Profile {
    Profile() {
        if (getenv("OPERATIONS")) at::addGlobalCallback(at::RecordFunctionCallback(&count).scopes({at::RecordScope::FUNCTION}));
        if (getenv("KERNELS")) std::thread(record_kernels).detach();
    }
    ~Profile() {
        FILE* file = getenv("OPERATIONS") ? fopen(getenv("OPERATIONS"), "w") : nullptr;
        if (!file) return;
        for (auto& [name, number] : calls) fprintf(file, "%8ld %s\n", number, name.c_str());
        fclose(file);
    }
} profile;
