// The threads of a block as fibers, of which each runs until it waits. A fiber begins by setcontext and goes on by longjmp, which asks nothing of the
// kernel. A warp goes on as far as it can, then the next. Blocks take turns in going through their threads from the last to the first, and in doing at
// once what a GPU does later: a barrier or a wait that is missing shows in one of the four ways.
#include "cuda.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <ucontext.h>
#include <vector>

Dimensions blockIdx, blockDim, gridDim;
bool later_at_once;
unsigned char dynamic_memory[1 << 18] __attribute__((aligned(1024)));
Shown shown[32][32];

namespace {
constexpr size_t STACK = 256 << 10;

struct Fiber {
    ucontext_t context;
    jmp_buf here;
    unsigned thread;
    bool begun, ended;
    Later copies, products;
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

// What changes as long as a warp gets on.
long progress(const Group& warp) { return block.rounds - block.running + warp.rounds; }
}  // namespace

unsigned current_thread() { return current->thread; }
Later& copies() { return current->copies; }
Later& products() { return current->products; }
void wait_for_block() { wait_for(block); }
void wait_for_warp() { wait_for(warps[current->thread / 32]); }

void launch(Dimensions grid, unsigned threads, std::function<void()> kernel) {
    gridDim = grid, blockDim = {threads, 1, 1}, body = &kernel;
    if (fibers.size() < threads) fibers.resize(threads);
    static unsigned launches = 0;
    launches++;
    unsigned blocks = grid.x * grid.y * grid.z;
    for (unsigned index = 0; index < blocks; index++) {
        bool from_the_last = (index + launches) & 1;
        later_at_once = (index + launches) & 2;
        auto in_turn = [&](unsigned index, unsigned count) { return from_the_last ? count - 1 - index : index; };
        unsigned place = launches & 1 ? blocks - 1 - index : index;
        blockIdx = {place % grid.x, place / grid.x % grid.y, place / grid.x / grid.y};
        block = Group{(int)threads};
        for (Group& warp : warps) warp = Group{};
        for (unsigned thread = 0; thread < threads; thread++) {
            Fiber& fiber = fibers[thread];
            fiber.thread = thread, fiber.begun = fiber.ended = false, warps[thread / 32].running++;
            fiber.copies = fiber.products = {};
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = STACK;
            makecontext(&fiber.context, run, 0);
        }
        while (block.running > 0) {
            long before = block.rounds - block.running;
            for (unsigned count = (threads + 31) / 32, index = 0; index < count; index++) {
                unsigned warp = in_turn(index, count), lanes = std::min(32u, threads - warp * 32);
                long last;
                do {
                    last = progress(warps[warp]);
                    for (unsigned lane = 0; lane < lanes; lane++) {
                        Fiber& fiber = fibers[warp * 32 + in_turn(lane, lanes)];
                        if (!fiber.ended) let_run(fiber);
                    }
                } while (progress(warps[warp]) != last);
            }
            if (block.rounds - block.running == before) fprintf(stderr, "threads wait for each other for ever\n"), exit(1);
        }
    }
}
