// The threads of a block as fibers, of which each runs until it waits. A fiber begins by setcontext and goes on by longjmp, which asks nothing of the
// kernel.
#include "cuda.hpp"

#include <csetjmp>
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
    jmp_buf here;
    unsigned thread;
    bool begun, ended;
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
jmp_buf scheduler;
std::function<void()>* body;
Group block, warps[32];

void let_others_run() {
    if (!_setjmp(current->here)) _longjmp(scheduler, 1);
}

// Let a fiber run until it waits or ends.
void let_run(Fiber& fiber) {
    current = &fiber;
    if (_setjmp(scheduler)) return;
    if (fiber.begun) _longjmp(fiber.here, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
}

void wait_for(Group& group) {
    long round = group.rounds;
    group.waiting++;
    group.go_on();
    while (group.rounds == round) let_others_run();
}

void run() {
    (*body)();
    current->ended = true;
    for (Group* group : {&block, &warps[current->thread / 32]}) group->running--, group->go_on();
    _longjmp(scheduler, 1);
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
            fiber.thread = thread, fiber.begun = fiber.ended = false, warps[thread / 32].running++;
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = STACK;
            makecontext(&fiber.context, run, 0);
        }
        while (block.running > 0) {
            long before = rounds();
            for (unsigned thread = 0; thread < threads; thread++)
                if (!fibers[thread].ended) let_run(fibers[thread]);
            if (rounds() == before) fprintf(stderr, "threads wait for each other for ever\n"), exit(1);
        }
    }
}
