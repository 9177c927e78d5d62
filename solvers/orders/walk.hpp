// The eviction walk itself.
//
// Invariant: every order returned runs each node for the first time in the order given, and reads nothing that is gone.
#pragma once

#include "solvers/orders/live.hpp"

namespace remat::orders {

class Walk {
  public:
    Walk(const Arrays& arrays, i64 budget, const Scoring& scoring, bool depth_first, Halt halt)
        : arrays_(arrays), budget_(budget), depth_first_(depth_first), halt_(halt), live_(arrays, scoring),
          order_(REPEATS * arrays.nodes() + SPARE), missing_(arrays.nodes()),
          most_looks_(LOOKS * (arrays.nodes() + SPARE_LOOKS)) {}

    // The order; empty if rebuilding goes round in circles or far back, or if `halt` comes to say so.
    Owned<i64> run(Ints group) && {
        for (i64 stage = 0; stage < arrays_.nodes(); stage++) {
            live_.go_to(stage, group[stage]);
            const Ints reads = arrays_.reads_of(stage);
            for (i64 turn = 0; turn < RESTARTS; turn++) {
                const Ints nodes = missing_for(reads);
                if (nodes.size == 0 || given_up_) break;
                rebuild(stage, nodes);
            }
            for (i64 value : reads) live_.pinned[value] = false;
            if (!all_live(reads) || given_up_) return Owned<i64>(0);
            compute(stage, stage);
            for (i64 value : reads) live_.next_user[value] += 1;
            live_.renew(stage, stage + 1);
        }
        return Owned<i64>(order_.slice(0, std::max(steps_ - 1, i64(0))));
    }

  private:
    static constexpr i64 RESTARTS = 30;
    static constexpr i64 REPEATS = 10;  // computes for each stage so far, and SPARE more, after which the walk gives up
    static constexpr i64 SPARE = 1000;
    // At what would be rebuilt the walk looks so often for each node, and as often as for so many nodes more. Walks that
    // end take 100 looks for each node.
    static constexpr i64 LOOKS = 300, SPARE_LOOKS = 100;

    bool all_live(Ints values) const {
        return std::all_of(values.begin(), values.end(), [&](i64 value) { return live_.live[value]; });
    }

    // Compute again what a stage is missing, as far as memory lets it.
    void rebuild(i64 stage, Ints nodes) {
        const Owned<i64> later = wanted_later(nodes);
        for (i64 value : arrays_.reads_of(stage)) live_.pinned[value] = true;
        i64 known = 0;
        for (i64 node : nodes) {
            if (!all_live(arrays_.reads_of(node))) break;
            for (i64 value : arrays_.reads_of(node)) {
                live_.wanted_at[value] = later[known++];
                live_.look_again(value);
            }
            compute(node, stage);
        }
        for (i64 node : nodes)
            for (i64 value : arrays_.reads_of(node)) {
                live_.wanted_at[value] = -1;
                live_.look_again(value);
            }
    }

    // For each read of each of the nodes the next place at which the value is read, or -1. The first goes to
    // `wanted_at`.
    Owned<i64> wanted_later(Ints nodes) {
        i64 count = 0;
        for (i64 node : nodes) count += arrays_.reads_of(node).size;
        Owned<i64> later(count);
        for (i64 place = nodes.size - 1; place >= 0; place--) {
            const Ints reads = arrays_.reads_of(nodes[place]);
            count -= reads.size;
            for (i64 r = 0; r < reads.size; r++) later[count + r] = live_.wanted_at[reads[r]];
            for (i64 value : reads) live_.wanted_at[value] = place;
        }
        return later;
    }

    // The nodes to run again before `reads` are all there, in an order in which they can run.
    Ints missing_for(Ints reads) {
        const i64 fresh = live_.new_mark();
        i64 count = 0;
        for (i64 root : reads) {
            const i64 writer = arrays_.writer[root];
            if (live_.live[root] || live_.mark[writer] == fresh) continue;
            live_.mark[writer] = fresh;
            live_.stack[0] = writer;
            for (i64 top = 1; top;) {
                const i64 node = live_.stack[top - 1], parent = unmarked_parent(node, fresh);
                if (parent >= 0) {
                    live_.mark[parent] = fresh;
                    live_.stack[top++] = parent;
                    continue;
                }
                live_.looked += 1;
                missing_[count++] = node;
                top -= 1;
            }
        }
        const Ints found = missing_.slice(0, count);
        if (!depth_first_) std::sort(found.begin(), found.end());
        return found;
    }

    // A node that must run before another and that the search has not met, or -1.
    i64 unmarked_parent(i64 node, i64 fresh) const {
        for (i64 value : arrays_.reads_of(node)) {
            const i64 parent = arrays_.writer[value];
            if (!live_.live[value] && live_.mark[parent] != fresh) return parent;
        }
        return -1;
    }

    // Run a node whose reads are live, after making room for it.
    void compute(i64 node, i64 stage) {
        if (halt_ || steps_ >= REPEATS * stage + SPARE || live_.looked > most_looks_) {
            given_up_ = true;
            return;
        }
        const Ints reads = arrays_.reads_of(node);
        Owned<bool> was_pinned(reads.size);
        for (i64 r = 0; r < reads.size; r++) was_pinned[r] = live_.pinned[reads[r]];
        for (i64 value : reads) live_.pinned[value] = true;
        for (i64 value : arrays_.writes_of(node))
            if (live_.live[value]) live_.drop(value);
        const bool is_short = !make_room(node, stage);
        for (i64 place = arrays_.writes_at[node]; place < arrays_.writes_at[node + 1]; place++) {
            const i64 value = arrays_.writes[place];
            if (is_left_out(value)) continue;
            const i64 over = overwritten(place, stage, is_short);
            if (over >= 0) {
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
    bool make_room(i64 node, i64 stage) {
        while (need(node, stage) > budget_) {
            const i64 victim = live_.cheapest();
            if (victim < 0) return false;
            live_.evict(victim);
        }
        return true;
    }

    // Whether a value is an optional write that, as far as is known, nobody will read.
    bool is_left_out(i64 value) const {
        return arrays_.optional[value] && !arrays_.output[value] && live_.wanted_at[value] < 0 &&
               !live_.pinned[value] && live_.next_user[value] >= arrays_.users_at[value + 1];
    }

    // The live read whose place this write may take: one without further use, or any if room is desperately short.
    i64 overwritten(i64 place, i64 stage, bool desperate) const {
        if (arrays_.output[arrays_.writes[place]]) return -1;
        for (i64 o = arrays_.over_at[place]; o < arrays_.over_at[place + 1]; o++) {
            const i64 read = arrays_.over[o];
            if (!live_.live[read] || arrays_.once[arrays_.writer[read]]) continue;
            const i64 end = arrays_.users_at[read + 1];
            i64 further = live_.next_user[read];
            if (further < end && arrays_.users[further] == stage) further += 1;
            if (desperate || (further >= end && !arrays_.output[read] && live_.wanted_at[read] < 0)) return read;
        }
        return -1;
    }

    i64 need(i64 node, i64 stage) const {
        i64 bytes = live_.used + arrays_.workspace[node];
        for (i64 place = arrays_.writes_at[node]; place < arrays_.writes_at[node + 1]; place++) {
            const i64 value = arrays_.writes[place];
            if (!is_left_out(value) && overwritten(place, stage, false) < 0) bytes += arrays_.size[value];
        }
        return bytes;
    }

    const Arrays& arrays_;
    const i64 budget_;
    const bool depth_first_;
    const Halt halt_;
    Live live_;
    Owned<i64> order_, missing_;
    const i64 most_looks_;
    i64 steps_ = 0;
    bool given_up_ = false;
};

inline Owned<i64> walk_through(const Arrays& arrays, i64 budget, const Scoring& scoring, Ints group, bool depth_first,
                               Halt halt) {
    return Walk(arrays, budget, scoring, depth_first, halt).run(group);
}

}  // namespace remat::orders
