// Annealing with the block of later runs in the loop: see arranging.py.
#pragma once

#include "solvers/methods/auto/cooling.hpp"
#include "solvers/placement/later.hpp"

namespace remat::placement {

using namespace annealing;

constexpr i64 WEIGHT = 4;  // of a byte that finds no room, where one over budget during one compute is 1

// Move about as long as `priced` says. The best order met goes to `found`, and what it lacks, costs and how long it is to
// `facts`.
//
// What is live is known after each move without running through the order, so that most moves are turned down by that.
inline void arrange(Ints tables, Ints state, const Arrays& arrays, i64 room, Ints found, Ints facts,
                    PricedCooling priced, bool reorder_only, Halt halt) {
    const Tables t(tables);
    State s(state, priced.cooling.seed);
    i64 lacking = above(arrays, order_of(s), room), over = excess(s) + WEIGHT * lacking;
    i64 &best_lacking = facts[0], &best_cost = facts[1], &best_length = facts[2];
    priced.run(s, halt, [&] { spread(t, s); }, [&](double heat) {
        const i64 cost = s.total;
        attempt(t, s, priced.price, reorder_only, 0.0);  // what is live fits here: places are what is wanted
        if (!s.logged) return lacking == 0;
        const double most = -heat * std::log(1.0 - s.random.uniform());  // by which it may become worse
        const auto is_too_bad = [&](i64 now) {
            return static_cast<double>(s.total - cost) + priced.price * static_cast<double>(now - over) > most;
        };
        i64 now = excess(s);
        if (is_too_bad(now)) {
            undo(t, s, 0);
            return false;
        }
        const Owned<i64> order = order_of(s);
        const i64 missing = above(arrays, order, room);
        now += WEIGHT * missing;
        if (is_too_bad(now)) {
            undo(t, s, 0);
            return false;
        }
        over = now;
        lacking = missing;
        if (missing < best_lacking || (missing == best_lacking && s.total < best_cost)) {
            best_lacking = missing;
            best_cost = s.total;
            best_length = order.size;
            std::copy(order.begin(), order.end(), found.begin());
        }
        return lacking == 0;
    });
}

}  // namespace remat::placement
