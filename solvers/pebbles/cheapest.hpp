// The search of `windows.py`: the cheapest computes that lead from copies at hand to copies that are wanted, in a budget.
//
// Backwards from what is wanted, as in `reach.hpp`, taken in the order of what a way costs so far and what must be run
// yet at least: every node once that makes what is missing, or what those read. Where what must be run yet counts more
// than once (`haste`), a way is met sooner, and need not be the cheapest.
#pragma once

#include <queue>
#include <tuple>

#include "solvers/pebbles/states.hpp"

namespace remat::pebbles {

class Cheapest {
  public:
    // `given`: the copies at hand; only these `nodes` may make one of those again. `below`: no way is wanted that costs
    // that or more. `most`: states looked at. `haste`: 1 or more.
    Cheapest(const Tables& tables, Ints given, Ints nodes, i64 budget, i64 below, i64 most, i64 haste, Halt halt)
        : t(tables), budget_(budget), below_(below), most_(most), haste_(haste), halt_(halt), held_(tables),
          given_(static_cast<std::size_t>(tables.count()), false), mark_(static_cast<std::size_t>(tables.problem.nodes()), 0),
          again_(mark_.size(), false) {
        for (i64 bit : given) given_[static_cast<std::size_t>(bit)] = true;
        for (i64 node : nodes) again_[static_cast<std::size_t>(node)] = true;
    }

    void run(Ints wanted) {
        Bits bits(wanted.begin(), wanted.end());
        held_.become(bits);
        start_ = states_.number(bits);
        meet(start_, 0, held_.size(), bits, -1, -1);
        while (!open_.empty()) {
            const auto [least, left, size, number] = open_.top();
            open_.pop();
            const i64 spent = states_[number].peak;
            if (spent + haste_ * left < least) continue;  // met again at less
            bound = least;
            if (states_.looked_at() >= most_ || states_.bytes() > ROOM || halt_) return;
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
    Owned<i64> way() {
        std::vector<i64> nodes;
        for (i64 number = cost < 0 ? start_ : found_; number != start_; number = states_[number].after)
            nodes.push_back(states_[number].node);
        Owned<i64> made(static_cast<i64>(nodes.size()));
        std::copy(nodes.begin(), nodes.end(), made.begin());
        return made;
    }

  private:
    static constexpr i64 ROOM = i64(1) << 28;  // bytes
    using Open = std::tuple<i64, i64, i64, i64>;  // cost at least, of it what is left, bytes, number

    bool is_given(i64 number) const {
        const Bits bits = states_.bits_of(number);
        return std::all_of(bits.begin(), bits.end(), [&](i64 bit) { return given_[static_cast<std::size_t>(bit)]; });
    }

    void meet(i64 number, i64 spent, i64 size, const Bits& bits, i64 after, i64 node) {
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
        stamp_ += 1;
        stack_.clear();
        for (i64 bit : bits) ask_for(bit);
        while (!stack_.empty()) {
            const i64 node = stack_.back();
            stack_.pop_back();
            total += t.problem.cost[node];
            for (i64 bit : t.reads_of(node)) {
                const i64 last = t.last_bit[t.value[bit]];
                if (last < 0 || !given_[static_cast<std::size_t>(last)]) ask_for(bit);
            }
        }
        return total;
    }

    void ask_for(i64 bit) {
        const i64 node = t.writer[bit];
        if (given_[static_cast<std::size_t>(bit)] || mark_[static_cast<std::size_t>(node)] == stamp_) return;
        mark_[static_cast<std::size_t>(node)] = stamp_;
        stack_.push_back(node);
    }

    void expand(i64 number, i64 spent) {
        const Bits bits = held_.bits();
        const i64 size = states_[number].size;
        std::vector<i64> nodes;
        for (i64 bit : bits) {
            const i64 node = t.writer[bit];
            if (!given_[static_cast<std::size_t>(bit)] || again_[static_cast<std::size_t>(node)]) nodes.push_back(node);
        }
        std::sort(nodes.begin(), nodes.end());
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        for (i64 node : nodes) {
            held_.become(bits);
            if (t.problem.once[node] && is_needed(node, bits)) continue;
            const i64 taken = held_.taken(node);
            auto [earlier, before] = held_.before(node, size);
            if (t.problem.resident + t.problem.workspace[node] + before + taken > budget_) continue;
            meet(states_.number(earlier), spent + t.problem.cost[node], before, earlier, number, node);
        }
    }

    bool is_needed(i64 node, const Bits& bits) const {
        return std::any_of(bits.begin(), bits.end(),
                           [&](i64 bit) { return t.writer[bit] != node && t.needs(t.writer[bit], node); });
    }

    const Tables& t;
    const i64 budget_, below_, most_, haste_;
    const Halt halt_;
    Held held_;
    States states_;
    std::vector<char> given_;
    std::vector<i64> mark_, stack_;
    std::vector<char> again_;
    i64 stamp_ = 0, start_ = 0, found_ = 0;
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

// (no way costs less, what the way found costs or -1, states looked at, the way).
inline std::tuple<i64, i64, i64, Owned<i64>> cheapest(Tables tables, Ints wanted, Ints given, Ints nodes, i64 budget,
                                                       i64 below, i64 most, i64 haste, Halt halt) {
    Cheapest search(tables, given, nodes, budget, below, most, haste, halt);
    search.run(wanted);
    return {search.bound, search.cost, search.looked_at(), search.way()};
}

}  // namespace remat::pebbles
