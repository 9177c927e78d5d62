// The loop of simulated annealing: how hot it is at each move, and how dear a byte over budget.
#pragma once

#include <cmath>

#include "solvers/methods/auto/moves.hpp"

namespace remat::annealing {

constexpr i64 WATCH = 512;     // moves between two looks at how dear a byte over budget should be
constexpr double STEP = 1.1;   // the factor by which that then changes
constexpr double COLD = 0.01;  // the heat at the end, as a share of that at the beginning
constexpr double MOVED = 0.4;  // from this draw on, a try moves computes about

struct Cooling {
    i64 moves;
    double hot;
    double price, dearest;  // of a byte over budget, and the most that it may become

    // The price rises while few moves end in an order that fits, and falls while most do.
    void learn(i64 fitting) {
        if (fitting < WATCH / 5)
            price = std::min(price * STEP, dearest);
        else if (fitting > WATCH / 2)
            price /= STEP;
    }

    // Make the moves, each by `try_move(heat)`, which says whether it has come to an order that fits. `spread_anew`
    // is called where gaps are used up.
    template <class Spread, class Try>
    void run(State& s, Halt halt, Spread spread_anew, Try try_move) {
        i64 fitting = 0;
        for (i64 number = 0; number < moves && !halt; number++) {
            if (is_crowded(s)) spread_anew();
            if (number % WATCH == WATCH - 1) {
                learn(fitting);
                fitting = 0;
            }
            const double heat = hot * std::pow(COLD, static_cast<double>(number) / static_cast<double>(moves));
            s.logged = 0;
            fitting += try_move(heat);
        }
    }
};

// Drop other computes, as long as that makes things better.
inline void drop_some(const Tables& t, State& s, double price, i64 tries) {
    if (s.logged == 0 || tries == 0) return;
    i64 over = excess(s);
    for (; tries; tries--) {
        const i64 cost = s.total, kept = s.logged;
        drop_any(t, s);
        if (s.logged == kept) continue;
        const i64 now = excess(s);
        if (static_cast<double>(s.total - cost) + price * static_cast<double>(now - over) > 0)
            undo(t, s, kept);
        else
            over = now;
    }
}

// Make one move, perhaps an empty one. `once`: only the order changes.
inline void attempt(const Tables& t, State& s, double price, bool once) {
    double kind = s.random.uniform();
    if (once) kind = MOVED + (1 - MOVED) * kind;
    if (kind < 0.2) {
        repeat(t, s);
        drop_some(t, s, price, s.random.below(4));
    } else if (kind < MOVED) {
        drop_any(t, s);
        drop_some(t, s, price, s.random.below(2));
    } else if (kind < 0.85) {
        move_any(t, s);
    } else if (kind < 0.95) {
        move_with(t, s);
    } else {
        move_group(t, s);
    }
}

}  // namespace remat::annealing
