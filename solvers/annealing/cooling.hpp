// The loop of simulated annealing over orders: the temperature at each move, and how dear a byte over the budget.
#pragma once

#include <cmath>

#include "solvers/annealing/clearing.hpp"

namespace remat::annealing {

constexpr double COLD_SHARE = 0.01;    // the temperature at the end, of that at the beginning
constexpr i64 WATCHED_MOVES = 512;     // between two looks at how dear a byte over the budget should be
constexpr double PRICE_FACTOR = 1.1;   // by which that then changes
constexpr double DROPPING_DRAW = 0.2;  // from this draw on, a try drops computes
constexpr double MOVING_DRAW = 0.4;    // and from this one on moves computes about
constexpr i64 SPREAD_SHARE = 3;         // computes for each move that comes before they are spread anew
constexpr i64 CLEARED = 3;             // slots cleared after a drop, at most

// Moves between two times that the computes of an order are spread anew: that takes as long as a good part of so many
// moves, and until then those that find no gap come to nothing.
inline i64 between_spreads(const State& s) { return s.steps / SPREAD_SHARE; }

// The struct of `cooling.py`, field for field.
struct Cooling {
    i64 moves;
    double temperature;  // from which it cools, each move by the same factor
    i64 seed;
    double price, dearest;  // of a byte over the budget, and the most that it may become

    auto fields() { return std::tie(moves, temperature, seed, price, dearest); }

    void check() const { require(temperature > 0 && price >= 0, "a temperature or a price that is none"); }

    // The price rises while few moves end in an order that fits, and falls while most do.
    void learn(i64 fitting) {
        if (fitting < WATCHED_MOVES / 5)
            price = std::min(price * PRICE_FACTOR, dearest);
        else if (fitting > WATCHED_MOVES / 2)
            price /= PRICE_FACTOR;
    }

    // Make the moves, each by `try_move(temperature)`, which says whether it has come to an order that fits. `spread_anew`
    // is called where gaps are used up.
    template <class Spread, class Try>
    void run(State& s, Halt halt, Spread spread_anew, Try try_move) {
        i64 fitting = 0, spread_at = 0;
        for (i64 number = 0; number < moves && !halt; number++) {
            if (is_full(s) || (s.crowded && number - spread_at >= between_spreads(s))) {
                spread_anew();
                spread_at = number;
            }
            if (number % WATCHED_MOVES == WATCHED_MOVES - 1) {
                learn(fitting);
                fitting = 0;
            }
            s.logged = 0;
            const double part = static_cast<double>(number) / static_cast<double>(moves);
            fitting += try_move(temperature * std::pow(COLD_SHARE, part));
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

// Make one move, perhaps an empty one. `clearing`: the part of draws that makes room instead of a repeat, and the part
// that makes room after a drop.
inline void attempt(const Tables& t, State& s, double price, double clearing) {
    double kind = s.random.uniform();
    if (s.kept == Kept::repeats) kind = MOVING_DRAW + (1 - MOVING_DRAW) * kind;
    if (kind < clearing && takes_too_much(s)) {
        make_room(t, s);
        drop_some(t, s, price, s.random.below(4));
    } else if (kind < DROPPING_DRAW) {
        repeat(t, s);
        drop_some(t, s, price, s.random.below(4));
    } else if (kind < DROPPING_DRAW + clearing) {
        drop_any(t, s);
        for (i64 times = s.random.below(CLEARED + 1); times; times--) make_room(t, s);
        drop_some(t, s, price, s.random.below(4));
    } else if (kind < MOVING_DRAW) {
        drop_any(t, s);
        drop_some(t, s, price, s.random.below(2));
    } else if (s.kept == Kept::order) {
        move_repeated(t, s);
    } else if (kind < 0.85) {
        move_any(t, s);
    } else if (kind < 0.95) {
        move_with(t, s);
    } else {
        move_group(t, s);
    }
}

}  // namespace remat::annealing
