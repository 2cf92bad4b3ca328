// Kernels by name.
#pragma once
#include <cstddef>
#include <vector>

struct Kernel {
    void (*call)(void** arguments); // nothing where it is not emulated
    std::vector<size_t> sizes;      // bytes of each argument
};

// The kernel of this name, compiled for embeddings side by side or added up.
const Kernel* find_kernel(const char* name, bool concat);
