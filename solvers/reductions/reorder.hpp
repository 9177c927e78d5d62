// Single ops moved about while the bytes over the budget, summed over all steps, do not grow.
#pragma once

#include "solvers/native/random.hpp"
#include "solvers/orders/measure.hpp"

namespace remat::reductions {

inline i64 bytes_over(const Arrays& arrays, Ints order, i64 budget) {
    i64 over = 0;
    for (i64 memory : orders::memory_of(arrays, order)) over += std::max(memory - budget, i64(0));
    return over;
}

// Take a node to another place between those it must follow and those it must precede, if that is no worse.
inline Owned<i64> move_about(const Arrays& arrays, Ints begin, Ints before_at, Ints before, Ints after_at, Ints after,
                             i64 budget, i64 seed, i64 moves, Halt halt) {
    Random random(seed);
    const i64 count = begin.size;
    Owned<i64> order(begin), tried(begin), place(count);
    for (i64 step = 0; step < count; step++) place[order[step]] = step;
    i64 worst = bytes_over(arrays, order, budget);
    for (; moves > 0 && worst && !halt; moves--) {
        const i64 node = random.below(count);
        i64 first = 0, last = count - 1;
        for (i64 one : before.slice(before_at[node], before_at[node + 1])) first = std::max(first, place[one] + 1);
        for (i64 one : after.slice(after_at[node], after_at[node + 1])) last = std::min(last, place[one] - 1);
        if (first >= last) continue;
        const i64 kind = random.below(4), here = place[node];
        const i64 target = kind == 0 ? first : kind == 1 ? last : first + random.below(last + 1 - first);
        if (target == here) continue;
        std::copy(order.begin(), order.end(), tried.begin());
        i64 *const from = &tried[here], *const to = &tried[target];
        if (target < here)
            std::rotate(to, from, from + 1);
        else
            std::rotate(from, from + 1, to + 1);
        const i64 over = bytes_over(arrays, tried, budget);
        if (over > worst) continue;
        worst = over;
        std::copy(tried.begin(), tried.end(), order.begin());
        for (i64 step = std::min(here, target); step <= std::max(here, target); step++) place[order[step]] = step;
    }
    return order;
}

}  // namespace remat::reductions
