// The eviction walk itself.
//
// Invariant: every order returned runs each node for the first time in the order given, and reads nothing that is gone.
#pragma once

#include <tuple>
#include <utility>

#include "solvers/orders/live.hpp"

namespace remat::orders {

class Walk {
  public:
    Walk(const Arrays& arrays, i64 budget, const Scoring& scoring, bool depth_first, Halt halt)
        : arrays_(arrays), budget_(budget), depth_first_(depth_first), halt_(halt), live_(arrays, scoring),
          order_(REPEATS * arrays.nodes() + SPARE), missing_(arrays.nodes()),
          most_looks_(LOOKS * (arrays.nodes() + SPARE_LOOKS)) {}

    // The order; empty if rebuilding goes round in circles or far back, or if `halt` comes to say so.
    Owned<Node> run(Array<const Group, Node> group) {
        for (Node stage : group.places()) {
            live_.go_to(stage, group[stage]);
            const auto reads = arrays_.reads[stage];
            for (i64 turn = 0; turn < RESTARTS; turn++) {
                const Array<Node> nodes = missing_for(reads);
                if (nodes.size == 0 || given_up_) break;
                rebuild(stage, nodes);
            }
            for (Value value : reads) live_.pinned[value] = false;
            if (!all_live(reads) || given_up_) return {};
            compute(stage, stage);
            for (Value value : reads) ++live_.next_user[value];
            live_.renew(stage, stage + 1);
        }
        return Owned<Node>(order_.first(std::max(steps_ - 1, i64(0))));
    }

    // How often it looked at what would be rebuilt.
    i64 looked() const { return live_.looked; }

  private:
    static constexpr i64 RESTARTS = 30;
    static constexpr i64 REPEATS = 10;  // computes for each stage so far, and SPARE more, after which the walk gives up
    static constexpr i64 SPARE = 1000;
    // At what would be rebuilt the walk looks so often for each node, and as often as for so many nodes more. Walks that
    // end take 100 looks for each node.
    static constexpr i64 LOOKS = 300, SPARE_LOOKS = 100;

    bool all_live(Array<const Value> values) const {
        return std::all_of(values.begin(), values.end(), [&](Value value) { return live_.live[value]; });
    }

    // Compute again what a stage is missing, as far as memory lets it.
    void rebuild(Node stage, Array<Node> nodes) {
        const Owned<i64> later = wanted_later(nodes);
        for (Value value : arrays_.reads[stage]) live_.pinned[value] = true;
        i64 known = 0;
        for (Node node : nodes) {
            if (!all_live(arrays_.reads[node])) break;
            for (Value value : arrays_.reads[node]) {
                live_.wanted_at[value] = later[known++];
                live_.look_again(value);
            }
            compute(node, stage);
        }
        for (Node node : nodes)
            for (Value value : arrays_.reads[node]) {
                live_.wanted_at[value] = -1;
                live_.look_again(value);
            }
    }

    // For each read of each of the nodes the next place at which the value is read, or -1. The first goes to
    // `wanted_at`.
    Owned<i64> wanted_later(Array<Node> nodes) {
        i64 count = 0;
        for (Node node : nodes) count += arrays_.reads[node].size;
        Owned<i64> later(count);
        for (i64 place = nodes.size - 1; place >= 0; place--) {
            const auto reads = arrays_.reads[nodes[place]];
            count -= reads.size;
            for (i64 r = 0; r < reads.size; r++) later[count + r] = live_.wanted_at[reads[r]];
            for (Value value : reads) live_.wanted_at[value] = place;
        }
        return later;
    }

    // The nodes to run again before `reads` are all there, in an order in which they can run.
    Array<Node> missing_for(Array<const Value> reads) {
        auto search = live_.nodes.start();
        i64 count = 0;
        for (Value read : reads) {
            const Node writer = arrays_.writer[read];
            if (live_.live[read] || !search.meet(writer)) continue;
            search.put(writer);
            while (!search.is_over()) {
                const Node parent = unmet_parent(search.next(), search);
                if (exists(parent)) {
                    search.meet(parent);
                    search.put(parent);
                    continue;
                }
                live_.looked += 1;
                missing_[count++] = search.take();
            }
        }
        const Array<Node> found = missing_.first(count);
        if (!depth_first_) std::sort(found.begin(), found.end());
        return found;
    }

    // A node that must run before another and that a search has not met, if there is one.
    Node unmet_parent(Node node, const Frontier<Node>::Search& search) const {
        for (Value value : arrays_.reads[node])
            if (!live_.live[value] && !search.has_met(arrays_.writer[value])) return arrays_.writer[value];
        return NONE;
    }

    // Run a node whose reads are live, after making room for it.
    void compute(Node node, Node stage) {
        if (halt_ || steps_ >= REPEATS * i64(stage) + SPARE || live_.looked > most_looks_) {
            given_up_ = true;
            return;
        }
        const auto reads = arrays_.reads[node];
        Owned<bool> was_pinned(reads.size);
        for (i64 r = 0; r < reads.size; r++) was_pinned[r] = live_.pinned[reads[r]];
        for (Value value : reads) live_.pinned[value] = true;
        for (Value value : arrays_.writes[node])
            if (live_.live[value]) live_.drop(value);
        const bool is_short = !make_room(node, stage);
        for (Write place : arrays_.writes.places(node)) {
            const Value value = arrays_.writes.items[place];
            if (is_left_out(value)) continue;
            const Value over = overwritten(place, stage, is_short);
            if (exists(over)) {
                live_.was_read[over] = true;
                live_.evict(over);
            }
            live_.hold(value);
        }
        for (i64 r = 0; r < reads.size; r++) {
            live_.pinned[reads[r]] = was_pinned[r];
            live_.was_read[reads[r]] = true;
        }
        order_[steps_++] = node;
        live_.renew(node, stage);
    }

    // Evict until a node fits. Returns whether it does.
    bool make_room(Node node, Node stage) {
        while (need(node, stage) > budget_) {
            const Value victim = live_.cheapest();
            if (!exists(victim)) return false;
            live_.evict(victim);
        }
        return true;
    }

    // Whether a value is an optional write that, as far as is known, nobody will read.
    bool is_left_out(Value value) const {
        return arrays_.optional[value] && !arrays_.output[value] && live_.wanted_at[value] < 0 &&
               !live_.pinned[value] && live_.next_user[value] >= arrays_.users.at[value + 1];
    }

    // The live read whose place this write may take: one without further use, or any if room is desperately short.
    Value overwritten(Write place, Node stage, bool desperate) const {
        if (arrays_.output[arrays_.writes.items[place]]) return NONE;
        for (Value read : arrays_.over[place]) {
            if (!live_.live[read] || arrays_.once[arrays_.writer[read]]) continue;
            const Use end = arrays_.users.at[read + 1];
            Use further = live_.next_user[read];
            if (further < end && arrays_.users.items[further] == stage) ++further;
            if (desperate || (further >= end && !arrays_.output[read] && live_.wanted_at[read] < 0)) return read;
        }
        return NONE;
    }

    i64 need(Node node, Node stage) const {
        i64 bytes = live_.used + arrays_.workspace[node];
        for (Write place : arrays_.writes.places(node)) {
            const Value value = arrays_.writes.items[place];
            if (!is_left_out(value) && !exists(overwritten(place, stage, false))) bytes += arrays_.size[value];
        }
        return bytes;
    }

    const Arrays& arrays_;
    const i64 budget_;
    const bool depth_first_;
    const Halt halt_;
    Live live_;
    Owned<Node> order_, missing_;
    const i64 most_looks_;
    i64 steps_ = 0;
    bool given_up_ = false;
};

// (the order, how often the walk looked at what would be rebuilt).
inline std::tuple<Owned<Node>, i64> walk_through(const Arrays& arrays, i64 budget, const Scoring& scoring,
                                                 Array<const Group, Node> group, bool depth_first, Halt halt) {
    require(group.size == arrays.nodes() && all_below(group, scoring.keep.rows), "a group of what is kept by node");
    require(scoring.weight.size == arrays.values(), "a weight for each value");
    Walk walk(arrays, budget, scoring, depth_first, halt);
    Owned<Node> order = walk.run(group);
    return {std::move(order), walk.looked()};
}

}  // namespace remat::orders
