// What only tests call: parts of the loops by themselves.
#pragma once

#include "solvers/annealing/anneal.hpp"
#include "solvers/native/random.hpp"

namespace remat::trials {

// What indexes an array by nodes: a node, and neither a number of another kind nor a plain one.
template <class At, class = void>
constexpr bool is_index = false;
template <class At>
constexpr bool is_index<At, std::void_t<decltype(Array<i64, Node>()[At()])>> = true;
static_assert(is_index<Node> && !is_index<Value> && !is_index<annealing::Slot> && !is_index<i64>);

// What the generator draws: integers below a bound, or with the bound 0 numbers from 0 to 1.
inline Owned<double> drawn(i64 seed, i64 count, i64 bound) {
    Random random(seed);
    Owned<double> found(count);
    for (double& one : found) one = bound ? static_cast<double>(random.below(bound)) : random.uniform();
    return found;
}

// What is held at each compute of a state.
inline Owned<i64> held_in_state(const annealing::State& s) {
    Owned<i64> found(s.steps);
    annealing::Slot slot = s.after[annealing::Slot(0)];
    for (i64& held : found) {
        held = s.held[slot];
        for (annealing::Part part = s.block_of(slot); part >= annealing::ROOT; part = annealing::above(part))
            held += s.span(part).added;
        slot = s.after[slot];
    }
    return found;
}

using Nodes = Owned<Node, Step>;

// Where a go of annealing comes to: its order, and of that the same; then the best order met, its excess and cost.
inline std::tuple<Nodes, Owned<i64>, i64, i64, Nodes, i64, i64> annealed(
    const Arrays& arrays, Order order, i64 budget, i64 roof, annealing::Cooling cooling, annealing::Kept kept) {
    const annealing::Tables t(arrays);
    annealing::State s = loaded(t, order, annealing::slots_for(t, 2 * order.size), annealing::Room{budget, roof}, -1,
                                kept, cooling.seed);
    const annealing::Record record = descend(t, s, cooling, Halt());
    const i64 over = excess(s);
    return {order_of(s, true), held_in_state(s), over, s.total, Nodes(record.steps.first(record.length)), record.excess,
            record.cost};
}

}  // namespace remat::trials
