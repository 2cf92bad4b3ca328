// As much of CUDA's driver, NVRTC and cuBLAS as the GPU engine asks for, on a processor: memory is memory, kernels are compiled by translate.py, work is done
// when it is asked for, and a graph is a list of work. What is asked for on a stream that has left another one waits, as late as it may be, until a stream waits
// for it: a wait that is missing shows. What the engine does not use is not here.
//
// The GPU has the compute capability that PUDICA_EMULATED in the environment says, as in 86; without it, it is a Hopper.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "driver.hpp"

typedef int Result;
#define API extern "C" __attribute__((visibility("default"))) Result

namespace {
typedef std::function<void()> Work;

std::recursive_mutex one_at_a_time;
std::vector<Work>* recording = nullptr;

struct Stream {
    bool late = false;  // whether it has left another one
    std::vector<Work> waiting;
};
std::vector<Stream*> streams;

Result do_or_record(Work work) {
    if (recording) recording->push_back(std::move(work));
    else work();
    return 0;
}

Result ask_for(void* stream, Work work) {
    std::lock_guard<std::recursive_mutex> guard(one_at_a_time);
    Stream* own = (Stream*)stream;
    if (own && own->late) return own->waiting.push_back(std::move(work)), 0;
    return do_or_record(std::move(work));
}

// As in 86 for 8.6.
int capability() {
    const char* asked = getenv("PUDICA_EMULATED");
    return asked ? atoi(asked) : 90;
}

// KiB of shared memory that a block may ask for.
int most_shared() {
    switch (capability()) {
        case 75: return 64;
        case 80: case 87: return 163;
        case 90: case 100: return 227;
        default: return 99;
    }
}
}  // namespace

API cuInit(unsigned) { return 0; }
API cuDeviceGet(int* device, int) { return *device = 0; }
API cuDeviceGetCount(int* count) { *count = 1; return 0; }
API cuDeviceGetName(char* name, int length, int) { snprintf(name, length, "emulated"); return 0; }
API cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 16: return *value = 4, 0;  // multiprocessors
        case 75: return *value = capability() / 10, 0;
        case 76: return *value = capability() % 10, 0;
        case 97: return *value = most_shared() << 10, 0;
        default: return *value = 0;
    }
}
API cuDevicePrimaryCtxRetain(void** context, int) { static int only; *context = &only; return 0; }
API cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API cuCtxSetCurrent(void*) { return 0; }
API cuCtxGetCurrent(void** context) { return cuDevicePrimaryCtxRetain(context, 0); }
API cuCtxSynchronize() { return 0; }
API cuMemGetInfo_v2(size_t* free, size_t* total) { *free = *total = (size_t)4 << 30; return 0; }
API cuStreamCreate(void** stream, unsigned) {
    std::lock_guard<std::recursive_mutex> guard(one_at_a_time);
    *stream = new Stream;
    streams.push_back((Stream*)*stream);
    return 0;
}
API cuStreamDestroy_v2(void*) { return 0; }
API cuStreamSynchronize(void*) { return 0; }
// An event is the stream it was recorded on.
API cuStreamWaitEvent(void* stream, void* event, unsigned) {
    std::lock_guard<std::recursive_mutex> guard(one_at_a_time);
    Stream *own = (Stream*)stream, *other = *(Stream**)event;
    if (!other || other == own) return 0;
    if (!other->late) own->late = true;
    for (Work& work : other->waiting) do_or_record(std::move(work));
    other->waiting.clear();
    return 0;
}
API cuEventCreate(void** event, unsigned) { *event = new Stream*(nullptr); return 0; }
API cuEventRecord(void* event, void* stream) { *(Stream**)event = (Stream*)stream; return 0; }
API cuEventDestroy_v2(void*) { return 0; }
API cuMemAlloc_v2(void** memory, size_t bytes) { *memory = aligned_alloc(256, (bytes + 255) / 256 * 256); return 0; }
API cuMemFree_v2(void* memory) { free(memory); return 0; }
API cuMemAllocAsync(void** memory, size_t bytes, void*) { return cuMemAlloc_v2(memory, bytes); }
API cuMemFreeAsync(void* memory, void*) { return cuMemFree_v2(memory); }
API cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, void*) { memcpy(to, from, bytes); return 0; }
API cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, void*) { memcpy(to, from, bytes); return 0; }
API cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) { return ask_for(stream, [=] { memcpy(to, from, bytes); }); }
API cuMemsetD8Async(void* memory, unsigned char value, size_t bytes, void* stream) { return ask_for(stream, [=] { memset(memory, value, bytes); }); }

// A module is a library that translate.py made.
API cuModuleLoadData(void** module, const void* image) {
    *module = dlopen((const char*)image, RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "%s\n", dlerror());
    return *module ? 0 : 200;
}
API cuModuleUnload(void*) { return 0; }
API cuModuleGetFunction(void** function, void* module, const char* name) {
    *function = (void*)((const Kernel* (*)(const char*))dlsym(module, "find_kernel"))(name);
    return *function ? 0 : 500;
}
// Bytes of dynamic shared memory that kernels have asked for; without asking, a kernel has 48 KiB with those of its own.
static std::map<const void*, unsigned> asked;
API cuFuncSetAttribute(void* function, int attribute, int value) {
    if (attribute == 8) asked[function] = value;
    return 0;
}
API cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned shared, void* stream, void** arguments, void**) {
    const Kernel* kernel = (const Kernel*)function;
    if (!x || !y || !z || !threads || threads > 1024 || y > 65535 || z > 65535) return 1;
    if (shared > sizeof dynamic_memory || shared > (asked.count(function) ? asked[function] : 48u << 10)) return 1;
    std::vector<std::vector<char>> values;
    for (size_t k = 0; k < kernel->sizes.size(); k++) values.emplace_back((char*)arguments[k], (char*)arguments[k] + kernel->sizes[k]);
    return ask_for(stream, [=]() mutable {
        std::vector<void*> places;
        for (auto& value : values) places.push_back(value.data());
        launch({x, y, z}, threads, [&] { kernel->call(places.data()); });
    });
}

API cuStreamBeginCapture_v2(void*, int) { recording = new std::vector<Work>; return 0; }
API cuStreamEndCapture(void*, void** graph) {
    *graph = recording;
    recording = nullptr;
    for (Stream* stream : streams)
        if (stream->waiting.size()) return 904;  // as CUDA refuses a recording that not all of its work has come back to
    return 0;
}
API cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) { *executable = graph; return 0; }
API cuGraphLaunch(void* executable, void*) {
    for (Work& work : *(std::vector<Work>*)executable) work();
    return 0;
}
API cuGraphUpload(void*, void*) { return 0; }
API cuGraphExecDestroy(void*) { return 0; }
API cuGraphDestroy(void* graph) { delete (std::vector<Work>*)graph; return 0; }
API cuGetErrorName(Result, const char** name) { *name = "emulated error"; return 0; }
API cuGetErrorString(Result, const char** text) { *text = "emulated error"; return 0; }

// NVRTC: machine code is the path of a library.
namespace {
struct Program { std::string source, library, log; };
}  // namespace
API nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*, const char* const*) {
    *program = new Program{source, "", ""};
    return 0;
}
API nvrtcCompileProgram(void* program, int count, const char* const* options) {
    Program& own = *(Program*)program;
    Dl_info here;
    dladdr((void*)&nvrtcCompileProgram, &here);
    std::string folder = std::string(here.dli_fname).substr(0, std::string(here.dli_fname).rfind('/'));
    std::string words;
    for (int k = 0; k < count; k++) words += std::string(" '") + options[k] + "'";
    size_t named = std::hash<std::string>()(own.source + words);
    own.library = folder + "/" + std::to_string(named) + ".so";
    std::string name = folder + "/" + std::to_string(named) + "." + std::to_string(getpid());  // other processes compile the same
    std::ofstream(name + ".cu") << own.source;
    std::string command = "python3 '" TRANSLATE_PY "' '" + name + ".cu' '" + own.library + "'" + words + " >'" + name + ".log' 2>&1";
    bool compiles = system(command.c_str()) == 0;
    std::ifstream log(name + ".log");
    own.log.assign(std::istreambuf_iterator<char>(log), {});
    for (const char* kind : {".cu", ".cpp", ".log"}) remove((name + kind).c_str());
    return compiles ? 0 : 6;
}
API nvrtcGetProgramLogSize(void* program, size_t* size) { *size = ((Program*)program)->log.size() + 1; return 0; }
API nvrtcGetProgramLog(void* program, char* log) { strcpy(log, ((Program*)program)->log.c_str()); return 0; }
API nvrtcGetCUBINSize(void* program, size_t* size) { *size = ((Program*)program)->library.size() + 1; return 0; }
API nvrtcGetCUBIN(void* program, char* code) { strcpy(code, ((Program*)program)->library.c_str()); return 0; }
API nvrtcDestroyProgram(void** program) { delete (Program*)*program; return 0; }

// cuBLAS
namespace {
constexpr int HALF = 2, SINGLE = 0, DOUBLE = 1, IN_TF32 = 77;  // cudaDataType, and CUBLAS_COMPUTE_32F_FAST_TF32

double number_at(const void* numbers, int kind, size_t at, bool as_tf32) {
    if (kind == DOUBLE) return ((const double*)numbers)[at];
    if (kind == HALF) return from_half(((const unsigned short*)numbers)[at]);
    float x = ((const float*)numbers)[at];
    return as_tf32 ? __uint_as_float(tf32(x)) : x;
}

// The matrix [rows, columns] that cuBLAS stores by columns, or its transpose, as rows.
std::vector<double> read(const void* numbers, int kind, size_t start, int rows, int columns, int line, bool turned, bool as_tf32) {
    std::vector<double> all((size_t)rows * columns);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            all[(size_t)i * columns + j] = number_at(numbers, kind, start + (turned ? j + (size_t)i * line : i + (size_t)j * line), as_tf32);
    return all;
}
}  // namespace
// A handle is its stream.
API cublasCreate_v2(void** handle) { *handle = new void*(nullptr); return 0; }
API cublasDestroy_v2(void*) { return 0; }
API cublasSetStream_v2(void* handle, void* stream) { *(void**)handle = stream; return 0; }
API cublasSetWorkspace_v2(void*, void*, size_t) { return 0; }
API cublasGemmStridedBatchedEx(void* handle, int turn_a, int turn_b, int m, int n, int k, const void* alpha, const void* A, int kind_a, int line_a, long long apart_a,
                               const void* B, int kind_b, int line_b, long long apart_b, const void* beta, void* C, int kind_c, int line_c, long long apart_c,
                               int batch, int compute, int) {
    int factors = kind_c == DOUBLE ? DOUBLE : SINGLE;
    double by = number_at(alpha, factors, 0, false), keep = number_at(beta, factors, 0, false);
    return ask_for(*(void**)handle, [=] {
        for (int one = 0; one < batch; one++) {
            auto a = read(A, kind_a, one * apart_a, m, k, line_a, turn_a, compute == IN_TF32), b = read(B, kind_b, one * apart_b, k, n, line_b, turn_b, compute == IN_TF32);
            std::vector<double> row(n);
            for (int i = 0; i < m; i++) {
                std::fill(row.begin(), row.end(), 0.);
                for (int l = 0; l < k; l++)
                    for (int j = 0; j < n; j++) row[j] += a[(size_t)i * k + l] * b[(size_t)l * n + j];
                for (int j = 0; j < n; j++) {
                    size_t at = one * apart_c + i + (size_t)j * line_c;
                    double sum = by * row[j] + (keep == 0 ? 0 : keep * number_at(C, kind_c, at, false));
                    if (kind_c == DOUBLE) ((double*)C)[at] = sum;
                    else ((float*)C)[at] = sum;
                }
            }
        }
    });
}
