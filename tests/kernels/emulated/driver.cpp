// As much of CUDA's driver, NVRTC and cuBLAS as the GPU engine asks for, on a processor: memory is memory, kernels are those of kernels.cpp, work is done
// when it is asked for, and a graph is a list of work. What the engine does not use is not here.
#include "cuda.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "driver.hpp"

typedef int Result;
#define API extern "C" __attribute__((visibility("default"))) Result

namespace {
struct Work { const Kernel* kernel; Dimensions grid; unsigned threads; std::vector<std::vector<char>> arguments; void* memory; unsigned char value; size_t bytes; };
struct Program { std::string options; };

std::recursive_mutex one_at_a_time;
std::vector<Work>* recording = nullptr;

void perform(const Work& work) {
    if (!work.kernel) {
        memset(work.memory, work.value, work.bytes);
        return;
    }
    std::vector<void*> places;
    for (auto& argument : work.arguments) places.push_back((void*)argument.data());
    launch(work.grid, work.threads, [&] { work.kernel->call(places.data()); });
}

Result ask_for(Work work) {
    std::lock_guard<std::recursive_mutex> guard(one_at_a_time);
    if (recording) recording->push_back(std::move(work));
    else perform(work);
    return 0;
}
}  // namespace

API cuInit(unsigned) { return 0; }
API cuDeviceGet(int* device, int) { return *device = 0; }
API cuDeviceGetCount(int* count) { *count = 1; return 0; }
API cuDeviceGetName(char* name, int length, int) { snprintf(name, length, "emulated"); return 0; }
API cuDeviceGetAttribute(int* value, int attribute, int) {
    // Compute capability 9.0, and a Hopper's shared memory.
    *value = attribute == 75 ? 9 : attribute == 97 ? 227 << 10 : 0;
    return 0;
}
API cuDevicePrimaryCtxRetain(void** context, int) { static int only; *context = &only; return 0; }
API cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API cuCtxSetCurrent(void*) { return 0; }
API cuCtxGetCurrent(void** context) { return cuDevicePrimaryCtxRetain(context, 0); }
API cuCtxSynchronize() { return 0; }
API cuMemGetInfo_v2(size_t* free, size_t* total) { *free = *total = (size_t)4 << 30; return 0; }
API cuStreamCreate(void** stream, unsigned) { static int only; *stream = &only; return 0; }
API cuStreamDestroy_v2(void*) { return 0; }
API cuStreamSynchronize(void*) { return 0; }
API cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
API cuEventCreate(void** event, unsigned) { static int only; *event = &only; return 0; }
API cuEventRecord(void*, void*) { return 0; }
API cuEventDestroy_v2(void*) { return 0; }
API cuMemAlloc_v2(void** memory, size_t bytes) { *memory = aligned_alloc(256, (bytes + 255) / 256 * 256); return 0; }
API cuMemFree_v2(void* memory) { free(memory); return 0; }
API cuMemAllocAsync(void** memory, size_t bytes, void*) { return cuMemAlloc_v2(memory, bytes); }
API cuMemFreeAsync(void* memory, void*) { return cuMemFree_v2(memory); }
API cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, void*) { memcpy(to, from, bytes); return 0; }
API cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, void*) { memcpy(to, from, bytes); return 0; }
API cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void*) { memcpy(to, from, bytes); return 0; }
API cuMemsetD8Async(void* memory, unsigned char value, size_t bytes, void*) { return ask_for({nullptr, {}, 0, {}, memory, value, bytes}); }

API cuModuleLoadData(void** module, const void* image) { *module = (void*)(intptr_t)(*(const char*)image); return 0; }
API cuModuleUnload(void*) { return 0; }
API cuModuleGetFunction(void** function, void* module, const char* name) {
    *function = (void*)find_kernel(name, (char)(intptr_t)module == 'c');
    return 0;
}
// Bytes of dynamic shared memory that kernels have asked for; without asking, a kernel has 48 KiB with those of its own.
static std::map<const void*, unsigned> asked;
API cuFuncSetAttribute(void* function, int attribute, int value) {
    if (attribute == 8) asked[function] = value;
    return 0;
}
API cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned shared, void*, void** arguments, void**) {
    const Kernel* kernel = (const Kernel*)function;
    if (!kernel->call) fprintf(stderr, "a kernel that is not emulated was launched\n"), exit(1);
    if (shared > sizeof memory || shared > (asked.count(function) ? asked[function] : 48u << 10)) return 1;
    Work work = {kernel, {x, y, z}, threads, {}, nullptr, 0, 0};
    for (size_t k = 0; k < kernel->sizes.size(); k++) work.arguments.emplace_back((char*)arguments[k], (char*)arguments[k] + kernel->sizes[k]);
    return ask_for(std::move(work));
}

API cuStreamBeginCapture_v2(void*, int) { recording = new std::vector<Work>; return 0; }
API cuStreamEndCapture(void*, void** graph) { *graph = recording; recording = nullptr; return 0; }
API cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) { *executable = graph; return 0; }
API cuGraphLaunch(void* executable, void*) {
    for (const Work& work : *(std::vector<Work>*)executable) perform(work);
    return 0;
}
API cuGraphUpload(void*, void*) { return 0; }
API cuGraphExecDestroy(void*) { return 0; }
API cuGraphDestroy(void* graph) { delete (std::vector<Work>*)graph; return 0; }
API cuGetErrorName(Result, const char** name) { *name = "emulated error"; return 0; }
API cuGetErrorString(Result, const char** text) { *text = "emulated error"; return 0; }

// NVRTC: machine code is one letter, which tells how tokens and positions are joined.
API nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) { *program = new Program; return 0; }
API nvrtcCompileProgram(void* program, int count, const char* const* options) {
    for (int k = 0; k < count; k++) ((Program*)program)->options += options[k];
    return 0;
}
API nvrtcGetCUBINSize(void*, size_t* size) { *size = 1; return 0; }
API nvrtcGetCUBIN(void* program, char* code) { *code = ((Program*)program)->options.find("-DCONCAT=1") != std::string::npos ? 'c' : 'a'; return 0; }
API nvrtcDestroyProgram(void** program) { delete (Program*)*program; return 0; }

API cublasCreate_v2(void** handle) { static int only; *handle = &only; return 0; }
API cublasDestroy_v2(void*) { return 0; }
API cublasSetStream_v2(void*, void*) { return 0; }
API cublasSetWorkspace_v2(void*, void*, size_t) { return 0; }
