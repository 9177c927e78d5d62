// Annealing with the block of later runs in the loop: see arranging.py.
#pragma once

#include "solvers/annealing/cooling.hpp"
#include "solvers/placement/later.hpp"

namespace remat::placement {

constexpr i64 WEIGHT = 4;  // of a byte that finds no room, where one over budget during one compute is 1

// Move about as long as `cooling` says, from an order that ends with the node that reads the outputs and needs `peak`. The
// best order met without that node, or nothing where none lacks and costs less than is known; what it lacks; its cost.
//
// What is live is known after each move without running through the order, so that most moves are turned down by that.
inline std::tuple<Owned<Node, Step>, i64, i64> arrange(const Arrays& searched, Order begin, i64 budget, i64 roof,
                                                       i64 peak, const Arrays& arrays, i64 room, i64 known_lacking,
                                                       i64 known_cost, annealing::Cooling cooling,
                                                       annealing::Kept kept, Halt halt) {
    require(searched.nodes() == arrays.nodes() + 1, "a problem searched that is not the other with a node at its end");
    const annealing::Tables t(searched);
    annealing::State s = loaded(t, begin, annealing::slots_for(t, 2 * begin.size), annealing::Room{budget, roof}, peak,
                                kept, cooling.seed);
    i64 lacking = above(arrays, order_of(s), room), over = excess(s) + WEIGHT * lacking;
    Owned<Node, Step> best;
    cooling.run(s, halt, [&] { spread(t, s); }, [&](double temperature) {
        const i64 cost = s.total;
        attempt(t, s, cooling.price, 0.0);  // what is live fits here: places are what is wanted
        if (!s.logged) return lacking == 0;
        const double most = -temperature * std::log(1.0 - s.random.uniform());  // by which it may become worse
        const auto is_too_bad = [&](i64 now) {
            return static_cast<double>(s.total - cost) + cooling.price * static_cast<double>(now - over) > most;
        };
        i64 now = excess(s);
        if (is_too_bad(now)) {
            undo(t, s, 0);
            return false;
        }
        Owned<Node, Step> order = order_of(s);
        const i64 missing = above(arrays, order, room);
        now += WEIGHT * missing;
        if (is_too_bad(now)) {
            undo(t, s, 0);
            return false;
        }
        over = now;
        lacking = missing;
        if (missing < known_lacking || (missing == known_lacking && s.total < known_cost)) {
            known_lacking = missing;
            known_cost = s.total;
            best = std::move(order);
        }
        return lacking == 0;
    });
    return {std::move(best), known_lacking, known_cost};
}

}  // namespace remat::placement
