// Kernels by name.
#pragma once
#include <cstddef>

#include "cuda.hpp"

struct Kernel {
    void (*call)(void** arguments);
    std::vector<size_t> sizes;  // bytes of each argument
};

// A kernel as the driver calls it.
template <class... Parameters, size_t... Place>
void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<Place...>) {
    kernel(*(Parameters*)arguments[Place]...);
}
template <auto>
struct Called;
template <class... Parameters, void (*KERNEL)(Parameters...)>
struct Called<KERNEL> {
    static Kernel kernel() {
        return {[](void** arguments) { call(KERNEL, arguments, std::index_sequence_for<Parameters...>()); }, {sizeof(Parameters)...}};
    }
};
