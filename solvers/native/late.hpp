// Threads that come back to Python when it is ending. Python ends such a thread by unwinding its stack, from inside a
// destructor that gives its lock back, and C++ answers that by aborting the process. From `wait_when_late` on the thread
// waits instead, for the end that is near.
//
// Invariant: what else ends a process ends it as before, as does anything in the thread that ends Python.
#pragma once

#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

namespace remat::late {

inline std::terminate_handler before = nullptr;
inline std::thread::id ending;

[[noreturn]] inline void wait() {
    while (!std::current_exception() && std::this_thread::get_id() != ending) {
        std::this_thread::sleep_for(std::chrono::hours(1));
    }
    if (before) before();
    std::abort();
}

inline void wait_when_late() {
    ending = std::this_thread::get_id();
    before = std::set_terminate(wait);
}

}  // namespace remat::late
