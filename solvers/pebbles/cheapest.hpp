// The search of `windows.py`: the cheapest computes that lead from copies at hand to copies that are wanted, in a budget.
//
// Backwards from what is wanted, as in `reach.hpp`, taken in the order of what a way costs so far and what must be run
// yet at least: every node once that makes what is missing, or what those read. Where what must be run yet counts more
// than once (`haste`), a way is met sooner, and need not be the cheapest.
#pragma once

#include <queue>
#include <tuple>

#include "solvers/orders/frontier.hpp"
#include "solvers/pebbles/states.hpp"

namespace remat::pebbles {

class Cheapest {
  public:
    // `given`: the copies at hand; only these `nodes` may make one of those again. `below`: no way is wanted that costs
    // that or more. `most`: states looked at. `haste`: 1 or more.
    Cheapest(const Tables& tables, Array<const Bit> given, Array<const Node> nodes, i64 budget, i64 below, i64 most,
             i64 haste, Halt halt)
        : t(tables), budget_(budget), below_(below), most_(most), haste_(haste), halt_(halt), held_(tables),
          states_(tables.count()), given_(tables.count(), false), again_(tables.problem.nodes(), false),
          asked_(tables.problem.nodes()) {
        for (Bit bit : given) given_[bit] = true;
        for (Node node : nodes) again_[node] = true;
    }

    void run(const Bits& bits) {
        held_.become(bits);
        start_ = states_.number(bits);
        meet(start_, 0, held_.size(), bits, NONE, NONE);
        while (!open_.empty()) {
            const auto [least, left, size, number] = open_.top();
            open_.pop();
            const i64 spent = states_[number].peak;
            if (spent + haste_ * left < least) continue;  // met again at less
            bound = least;
            if (states_.looked_at() >= most_ || states_.are_full() || halt_) return;
            if (left == 0 && is_given(number)) {
                found_ = number;
                cost = spent;
                return;
            }
            held_.become(states_.bits_of(number));
            if (!states_.is_looked_at(held_, number)) expand(number, spent);
        }
        bound = below_;
    }

    // No way costs less than `bound`, without haste; what the way found costs, or -1.
    i64 bound = 0, cost = -1;

    i64 looked_at() const { return states_.looked_at(); }

    // The computes of the way found.
    Owned<Node> way() {
        std::vector<Node> nodes;
        for (Number number = cost < 0 ? start_ : found_; number != start_; number = states_[number].after)
            nodes.push_back(states_[number].node);
        return Owned(nodes);
    }

  private:
    using Open = std::tuple<i64, i64, i64, Number>;  // cost at least, of it what is left, bytes, number

    bool is_given(Number number) const {
        const Bits bits = states_.bits_of(number);
        return std::all_of(bits.begin(), bits.end(), [&](Bit bit) { return given_[bit]; });
    }

    void meet(Number number, i64 spent, i64 size, const Bits& bits, Number after, Node node) {
        State& state = states_[number];
        if (state.peak <= spent) return;
        const i64 left = cost_left(bits);
        if (spent + left >= below_) return;
        state.peak = spent;
        state.size = size;
        state.after = after;
        state.node = node;
        open_.emplace(spent + haste_ * left, left, size, number);
    }

    // What the nodes cost that must be run at least once before these copies are there.
    i64 cost_left(const Bits& bits) {
        i64 total = 0;
        auto asked = asked_.start();
        const auto ask_for = [&](Bit bit) {
            if (!given_[bit] && asked.meet(t.writer[bit])) asked.put(t.writer[bit]);
        };
        for (Bit bit : bits) ask_for(bit);
        while (!asked.is_over()) {
            const Node node = asked.take();
            total += t.problem.cost[node];
            for (Bit bit : t.reads[node]) {
                const Bit last = t.last_bit[t.value[bit]];
                if (!exists(last) || !given_[last]) ask_for(bit);
            }
        }
        return total;
    }

    void expand(Number number, i64 spent) {
        const Bits bits = held_.bits();
        const i64 size = states_[number].size;
        Bits made;
        for (Bit bit : bits)
            if (!given_[bit] || again_[t.writer[bit]]) made.push_back(bit);
        for (Node node : t.writers_of(made)) {
            held_.become(bits);
            if (t.problem.once[node] && t.is_needed(node, bits)) continue;
            const i64 taken = held_.taken(node);
            auto [earlier, before] = held_.before(node, size);
            if (t.problem.resident + t.problem.workspace[node] + before + taken > budget_) continue;
            meet(states_.number(earlier), spent + t.problem.cost[node], before, earlier, number, node);
        }
    }

    const Tables& t;
    const i64 budget_, below_, most_, haste_;
    const Halt halt_;
    Held held_;
    States states_;
    Owned<bool, Bit> given_;
    Owned<bool, Node> again_;
    orders::Frontier<Node> asked_;
    Number start_{0}, found_{0};
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

// (no way costs less, what the way found costs or -1, states looked at, the way).
inline std::tuple<i64, i64, i64, Owned<Node>> cheapest(const Tables& tables, Array<const Bit> wanted,
                                                       Array<const Bit> given, Array<const Node> nodes, i64 budget,
                                                       i64 below, i64 most, i64 haste, Halt halt) {
    require(all_below(given, tables.count()) && all_below(nodes, tables.problem.nodes()), "no copies or nodes of these");
    Cheapest search(tables, given, nodes, budget, below, most, haste, halt);
    search.run(tables.checked(wanted));
    return {search.bound, search.cost, search.looked_at(), search.way()};
}

}  // namespace remat::pebbles
