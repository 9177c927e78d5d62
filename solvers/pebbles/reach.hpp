// The search of `reach.py`: the least peak with which copies can be brought into memory together.
#pragma once

#include <queue>
#include <tuple>

#include "solvers/pebbles/ancestors.hpp"
#include "solvers/pebbles/states.hpp"

namespace remat::pebbles {

class Search {
  public:
    Search(const Tables& tables, Array<const i64, Bit> alone, i64 known, i64 most, Halt halt)
        : t(tables), alone_(alone), known_(known), most_(most), halt_(halt), held_(tables),
          states_(tables.count()) {}

    // Search from these copies; no lower peak than `at_least` matters.
    void run(const Bits& bits, i64 at_least) {
        held_.become(bits);
        size = held_.size();
        start_ = states_.number(bits);
        meet(start_, at_least, size, Ancestors(t, t.writers_of(bits)).count(), {NONE, NONE, NONE});
        while (!open_.empty()) {
            const auto [peak, left, bytes, number] = open_.top();
            open_.pop();
            if (states_[number].peak < peak) continue;
            least = std::min(peak, known_);
            if (states_.looked_at() >= most_ || states_.are_full() || halt_) return;
            const Number smaller = drop(number, peak);
            if (!exists(smaller)) continue;
            if (held_.bits().empty()) {
                found_ = smaller;
                reached = peak;
                return;
            }
            if (!states_.is_looked_at(held_, smaller)) expand(smaller, peak);
        }
        least = known_;
    }

    // The bytes of what is wanted; the peak below which no way leads there; that of the way found, or -1.
    i64 size = 0, least = 0, reached = -1;

    i64 looked_at() const { return states_.looked_at(); }

    // The way found, forwards: for each step its node or -1, the bit that is made of nothing if so, and what is held.
    std::tuple<Owned<Node>, Owned<Bit>, Owned<i64>, Owned<Bit>> way() {
        std::vector<Node> nodes;
        std::vector<Bit> made, held;
        std::vector<i64> at{0};
        for (Number number = reached < 0 ? start_ : found_; number != start_; number = states_[number].after) {
            nodes.push_back(states_[number].node);
            made.push_back(states_[number].bit);
            for (Bit bit : states_.bits_of(number)) held.push_back(bit);
            at.push_back(static_cast<i64>(held.size()));
        }
        return {Owned(nodes), Owned(made), Owned(at), Owned(held)};
    }

  private:
    struct Step {
        Number after;
        Node node;
        Bit bit;
    };
    struct Back {
        i64 need, size, left;
        Node node;
        Bit bit;
        Bits earlier;
    };
    using Open = std::tuple<i64, i64, i64, Number>;  // peak, nodes still to run at least, bytes, number

    // `left`: how many nodes must run at least before its copies are there.
    void meet(Number number, i64 peak, i64 size, i64 left, Step step) {
        State& state = states_[number];
        if (state.peak <= peak) return;
        std::tie(state.peak, state.size, state.after, state.node, state.bit) =
            std::make_tuple(peak, size, step.after, step.node, step.bit);
        open_.emplace(peak, left, size, number);
    }

    // Leave out what can be made of nothing beside the rest; nothing if what is left was met before.
    Number drop(Number number, i64 peak) {
        Bits held = states_.bits_of(number), bits = held;
        std::stable_sort(bits.begin(), bits.end(), [&](Bit one, Bit other) { return t.bytes[one] > t.bytes[other]; });
        for (Bit bit : bits) {
            const i64 size = states_[number].size;
            if (!t.shared[bit] && size - t.bytes[bit] + alone_[bit] > peak) continue;
            const Bits rest = but_for(bit, held);
            const i64 less = size_without(bit, rest, size);
            if (less + alone_[bit] > peak) continue;
            held = rest;
            const Number smaller = states_.number(held);
            State& state = states_[smaller];
            if (state.peak <= peak) return NONE;
            std::tie(state.peak, state.size, state.after, state.node, state.bit) =
                std::make_tuple(peak, less, number, NONE, bit);
            number = smaller;
        }
        held_.become(held);
        return number;
    }

    static Bits but_for(Bit bit, const Bits& bits) {
        Bits rest;
        rest.reserve(bits.size());
        std::copy_if(bits.begin(), bits.end(), std::back_inserter(rest), [&](Bit other) { return other != bit; });
        return rest;
    }

    // The size of the rest without a copy, if it is so large with it; that may have become what is held.
    i64 size_without(Bit bit, const Bits& rest, i64 size) {
        if (!t.shared[bit]) return size - t.bytes[bit];
        held_.become(rest);
        return held_.size();
    }

    // All steps back, or one if it is the only one worth taking.
    void expand(Number number, i64 peak) {
        const Bits bits = held_.bits();
        const i64 size = states_[number].size;
        const Ancestors ancestors(t, t.writers_of(bits));
        std::vector<Back> steps;
        for (Node node : ancestors.writers()) {
            held_.become(bits);
            if (t.problem.once[node] && t.is_needed(node, bits)) continue;
            const i64 taken = held_.taken(node);
            auto [earlier, before] = held_.before(node, size);
            const i64 need = t.problem.resident + t.problem.workspace[node] + before + taken;
            if (std::max(peak, need) >= known_) continue;
            Back step{std::max(peak, need), before, ancestors.before(node), node, NONE, std::move(earlier)};
            const bool only = step.need == peak && (is_smaller(step.earlier, bits) || may_be_last(node, bits));
            steps.push_back(std::move(step));
            if (only) {
                meet_all({std::move(steps.back())}, number);
                return;
            }
        }
        for (Bit bit : bits) {
            Bits rest = but_for(bit, bits);
            const i64 less = size_without(bit, rest, size), need = std::max(peak, less + alone_[bit]);
            if (need < known_) steps.push_back({need, less, ancestors.without(bit, rest), NONE, bit, std::move(rest)});
        }
        meet_all(steps, number);
    }

    void meet_all(const std::vector<Back>& steps, Number after) {
        for (const Back& step : steps)
            meet(states_.number(step.earlier), step.need, step.size, step.left, {after, step.node, step.bit});
    }

    static bool is_smaller(const Bits& earlier, const Bits& bits) {
        return std::includes(bits.begin(), bits.end(), earlier.begin(), earlier.end());
    }

    // Whether what a node has made here can as well be made last.
    bool may_be_last(Node node, const Bits& bits) const {
        i64 made = 0;
        for (Bit bit : bits) {
            if (t.writer[bit] != node) continue;
            if (t.shared[bit]) return false;
            made += t.bytes[bit];
        }
        const auto reads = t.reads[node];
        if (t.weight[node] > made) return false;
        return std::none_of(reads.begin(), reads.end(), [&](Bit bit) { return t.shared[bit]; }) && !t.is_needed(node, bits);
    }

    const Tables& t;
    const Array<const i64, Bit> alone_;
    const i64 known_, most_;
    const Halt halt_;
    Held held_;
    States states_;
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
    Number start_{0}, found_{0};
};

// (least, peak or -1, bytes of what is wanted, states looked at, and the way).
using Reached = std::tuple<i64, i64, i64, i64, Owned<Node>, Owned<Bit>, Owned<i64>, Owned<Bit>>;

inline Reached reach(const Tables& tables, Array<const Bit> wanted, Array<const i64, Bit> alone, i64 known, i64 most,
                     i64 at_least, Halt halt) {
    require(alone.size == tables.count(), "a peak for each copy");
    Search search(tables, alone, known, most, halt);
    search.run(tables.checked(wanted), at_least);
    return std::tuple_cat(std::make_tuple(search.least, search.reached, search.size, search.looked_at()), search.way());
}

}  // namespace remat::pebbles
