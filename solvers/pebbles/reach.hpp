// The search of `reach.py`: the least peak with which copies can be brought into memory together.
#pragma once

#include <queue>
#include <tuple>

#include "solvers/pebbles/states.hpp"

namespace remat::pebbles {

class Search {
  public:
    Search(const Tables& tables, Ints alone, i64 known, i64 most, Halt halt)
        : t(tables), alone_(alone), known_(known), most_(most), halt_(halt), held_(tables) {}

    // Search from these copies; no lower peak than `at_least` matters.
    void run(Ints wanted, i64 at_least) {
        Bits bits(wanted.begin(), wanted.end());
        held_.become(bits);
        start_ = states_.number(bits);
        meet(start_, at_least, held_.size(), {-1, -1, -1});
        while (!open_.empty()) {
            const auto [peak, left, size, number] = open_.top();
            open_.pop();
            if (states_[number].peak < peak) continue;
            least = std::min(peak, known_);
            if (states_.looked_at() >= most_ || states_.bytes() > ROOM || halt_) return;
            i64 smaller = drop(number, peak);
            if (smaller < 0) continue;
            if (held_.bits().empty()) {
                found_ = smaller;
                reached = peak;
                return;
            }
            if (!states_.is_looked_at(held_, smaller)) expand(smaller, peak);
        }
        least = known_;
    }

    // The peak below which no way leads there; that of the way found, or -1.
    i64 least = 0, reached = -1;

    i64 looked_at() const { return states_.looked_at(); }

    // The way found, forwards: for each step its node or -1, the bit that is made of nothing if so, and what is held.
    std::tuple<Owned<i64>, Owned<i64>, Owned<i64>, Owned<i64>> way() {
        std::vector<i64> nodes, made, at{0}, held;
        for (i64 number = reached < 0 ? start_ : found_; number != start_; number = states_[number].after) {
            nodes.push_back(states_[number].node);
            made.push_back(states_[number].bit);
            for (i64 bit : states_.bits_of(number)) held.push_back(bit);
            at.push_back(static_cast<i64>(held.size()));
        }
        return {owned(nodes), owned(made), owned(at), owned(held)};
    }

  private:
    static constexpr i64 ROOM = i64(1) << 28;  // bytes

    struct Step {
        i64 after, node, bit;
    };
    struct Back {
        i64 need, size, node, bit;
        Bits earlier;
    };
    using Open = std::tuple<i64, i64, i64, i64>;  // peak, nodes still to run at least, bytes, number

    static Owned<i64> owned(const std::vector<i64>& from) {
        Owned<i64> made(static_cast<i64>(from.size()));
        std::copy(from.begin(), from.end(), made.begin());
        return made;
    }

    void meet(i64 number, i64 peak, i64 size, Step step) {
        State& state = states_[number];
        if (state.peak <= peak) return;
        std::tie(state.peak, state.size, state.after, state.node, state.bit) =
            std::make_tuple(peak, size, step.after, step.node, step.bit);
        open_.emplace(peak, left(number), size, number);
    }

    // How many nodes must run at least before these copies are there.
    i64 left(i64 number) {
        Bits words(t.needed.columns, 0);
        for (i64 node : nodes_of(states_.bits_of(number)))
            for (i64 word = 0; word < t.needed.columns; word++) words[word] |= t.needed[node][word];
        i64 count = 0;
        for (i64 word : words) count += __builtin_popcountll(static_cast<std::uint64_t>(word));
        return count;
    }

    // Leave out what can be made of nothing beside the rest; -1 if what is left was met before.
    i64 drop(i64 number, i64 peak) {
        Bits bits = states_.bits_of(number);
        held_.become(bits);
        std::stable_sort(bits.begin(), bits.end(), [&](i64 one, i64 other) { return t.bytes[one] > t.bytes[other]; });
        for (i64 bit : bits) {
            const i64 size = states_[number].size;
            if (!t.shared[bit] && size - t.bytes[bit] + alone_[bit] > peak) continue;
            const Bits before = held_.bits();
            const i64 less = without(bit, size);
            if (less + alone_[bit] > peak) {
                held_.become(before);
                continue;
            }
            const i64 rest = states_.number(held_.bits());
            State& state = states_[rest];
            if (state.peak <= peak) return -1;
            std::tie(state.peak, state.size, state.after, state.node, state.bit) =
                std::make_tuple(peak, less, number, i64(-1), bit);
            number = rest;
        }
        return number;
    }

    // Leave one copy out of what is held. Returns the size of the others.
    i64 without(i64 bit, i64 size) {
        Bits rest;
        for (i64 other : held_.bits())
            if (other != bit) rest.push_back(other);
        held_.become(rest);
        return t.shared[bit] ? held_.size() : size - t.bytes[bit];
    }

    // All steps back, or one if it is the only one worth taking.
    void expand(i64 number, i64 peak) {
        const Bits bits = held_.bits();
        const i64 size = states_[number].size;
        std::vector<Back> steps;
        for (i64 node : nodes_of(bits)) {
            held_.become(bits);
            if (t.problem.once[node] && is_needed(node, bits)) continue;
            const i64 taken = held_.taken(node);
            auto [earlier, before] = held_.before(node, size);
            const i64 need = t.problem.resident + t.problem.workspace[node] + before + taken;
            Back step{std::max(peak, need), before, node, -1, std::move(earlier)};
            if (step.need >= known_) continue;
            const bool only = step.need == peak && (is_smaller(step.earlier, bits) || may_be_last(node, bits));
            steps.push_back(std::move(step));
            if (only) {
                meet_all({std::move(steps.back())}, number);
                return;
            }
        }
        for (i64 bit : bits) {
            held_.become(bits);
            const i64 less = without(bit, size), need = std::max(peak, less + alone_[bit]);
            if (need < known_) steps.push_back({need, less, -1, bit, held_.bits()});
        }
        meet_all(steps, number);
    }

    void meet_all(const std::vector<Back>& steps, i64 after) {
        for (const Back& step : steps)
            meet(states_.number(step.earlier), step.need, step.size, {after, step.node, step.bit});
    }

    bool is_written(i64 node, i64 bit) const { return t.writer[bit] == node; }

    static bool is_smaller(const Bits& earlier, const Bits& bits) {
        return std::includes(bits.begin(), bits.end(), earlier.begin(), earlier.end());
    }

    // Those that make these copies, in their order.
    std::vector<i64> nodes_of(const Bits& bits) const {
        std::vector<i64> nodes;
        for (i64 bit : bits) nodes.push_back(t.writer[bit]);
        std::sort(nodes.begin(), nodes.end());
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        return nodes;
    }

    // Whether another of these copies cannot be made without a node.
    bool is_needed(i64 node, const Bits& bits) const {
        return std::any_of(bits.begin(), bits.end(),
                           [&](i64 bit) { return t.writer[bit] != node && t.needs(t.writer[bit], node); });
    }

    // Whether what a node has made here can as well be made last.
    bool may_be_last(i64 node, const Bits& bits) const {
        i64 made = 0;
        for (i64 bit : bits) {
            if (!is_written(node, bit)) continue;
            if (t.shared[bit]) return false;
            made += t.bytes[bit];
        }
        const Ints reads = t.reads_of(node);
        if (t.weight[node] > made) return false;
        return std::none_of(reads.begin(), reads.end(), [&](i64 bit) { return t.shared[bit]; }) && !is_needed(node, bits);
    }

    const Tables& t;
    const Ints alone_;
    const i64 known_, most_;
    const Halt halt_;
    Held held_;
    States states_;
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
    i64 start_ = 0, found_ = 0;
};

// (least, peak or -1, bytes of what is wanted, states looked at, and the way).
using Reached = std::tuple<i64, i64, i64, i64, Owned<i64>, Owned<i64>, Owned<i64>, Owned<i64>>;

inline Reached reach(Tables tables, Ints wanted, Ints alone, i64 known, i64 most, i64 at_least, Halt halt) {
    Search search(tables, alone, known, most, halt);
    search.run(wanted, at_least);
    Held held(tables);
    held.become(Bits(wanted.begin(), wanted.end()));
    const i64 size = held.size();
    auto [nodes, made, at, bits] = search.way();
    return {search.least, search.reached, size, search.looked_at(), std::move(nodes), std::move(made), std::move(at),
            std::move(bits)};
}

}  // namespace remat::pebbles
