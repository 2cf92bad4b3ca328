// The threads of a block as fibers, of which each runs until it waits.
#include "cuda.hpp"

#include <cstdio>
#include <cstdlib>
#include <ucontext.h>
#include <vector>

Dimensions blockIdx, blockDim, gridDim;
unsigned char memory[1 << 18] __attribute__((aligned(128)));
Shown shown[32][32];

namespace {
constexpr size_t STACK = 256 << 10;

struct Fiber {
    ucontext_t context;
    unsigned thread;
    bool ended;
    std::vector<char> stack = std::vector<char>(STACK);
};

// Those of a block or a warp that have not ended, how many of them wait, and how often they have gone on.
struct Group {
    int running = 0, waiting = 0;
    long rounds = 0;
    void go_on() { if (running > 0 && waiting == running) waiting = 0, rounds++; }
};

std::vector<Fiber> fibers;
Fiber* current;
ucontext_t scheduler;
std::function<void()>* body;
Group block, warps[32];

void wait_for(Group& group) {
    long round = group.rounds;
    group.waiting++;
    group.go_on();
    while (group.rounds == round) swapcontext(&current->context, &scheduler);
}

void run() {
    (*body)();
    current->ended = true;
    for (Group* group : {&block, &warps[current->thread / 32]}) group->running--, group->go_on();
    swapcontext(&current->context, &scheduler);
}

long rounds() {
    long all = block.rounds - block.running;
    for (Group& warp : warps) all += warp.rounds;
    return all;
}
}  // namespace

unsigned current_thread() { return current->thread; }
void wait_for_block() { wait_for(block); }
void wait_for_warp() { wait_for(warps[current->thread / 32]); }

void launch(Dimensions grid, unsigned threads, std::function<void()> kernel) {
    gridDim = grid, blockDim = {threads, 1, 1}, body = &kernel;
    if (fibers.size() < threads) fibers.resize(threads);
    for (unsigned place = 0; place < grid.x * grid.y * grid.z; place++) {
        blockIdx = {place % grid.x, place / grid.x % grid.y, place / grid.x / grid.y};
        block = Group{(int)threads};
        for (Group& warp : warps) warp = Group{};
        for (unsigned thread = 0; thread < threads; thread++) {
            Fiber& fiber = fibers[thread];
            fiber.thread = thread, fiber.ended = false, warps[thread / 32].running++;
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = STACK;
            makecontext(&fiber.context, run, 0);
        }
        while (block.running > 0) {
            long before = rounds();
            for (unsigned thread = 0; thread < threads; thread++)
                if (!fibers[thread].ended) current = &fibers[thread], swapcontext(&scheduler, &current->context);
            if (rounds() == before) fprintf(stderr, "threads wait for each other for ever\n"), exit(1);
        }
    }
}
