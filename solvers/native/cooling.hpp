// How simulated annealing cools: from `temperature` down to a share of that, each move by the same factor.
#pragma once

#include <cmath>

#include "solvers/native/array.hpp"

namespace remat {

constexpr double COLD_SHARE = 0.01;  // the temperature at the end, of that at the beginning

// The struct of `orders/cooling.py`, field for field.
struct Cooling {
    i64 moves;
    double temperature;
    i64 seed;

    template <class Visit>
    void fields(Visit visit) {
        visit(moves), visit(temperature), visit(seed);
    }

    // Make the moves, each by `try_move(number, temperature)`, until `halt` says that time is up.
    template <class Try>
    void run(Halt halt, Try try_move) const {
        for (i64 number = 0; number < moves && !halt; number++)
            try_move(number, temperature * std::pow(COLD_SHARE, static_cast<double>(number) / static_cast<double>(moves)));
    }
};

}  // namespace remat
