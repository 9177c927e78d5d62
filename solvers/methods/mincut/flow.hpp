// Maximum flow in exact integers, by Dinic's algorithm.
//
// Invariant: no arithmetic is rounded; a minimum cut below INFINITE crosses no infinite arc.
#pragma once

#include <tuple>

#include "solvers/native/array.hpp"

namespace remat::mincut {

constexpr i64 INFINITE = i64(1) << 62;

class Network {
  public:
    // Arcs lie by their tails, each with the place of its reverse.
    Network(i64 count, Ints tails, Ints heads, Ints capacities)
        : start_(count + 1, 0), to_(2 * tails.size), residual_(2 * tails.size), back_(2 * tails.size),
          level_(count), queue_(count), path_(count) {
        for (i64 arc = 0; arc < tails.size; arc++) {
            start_[tails[arc] + 1] += 1;
            start_[heads[arc] + 1] += 1;
        }
        for (i64 vertex = 0; vertex < count; vertex++) start_[vertex + 1] += start_[vertex];
        Owned<i64> free(start_);
        for (i64 arc = 0; arc < tails.size; arc++) {
            const i64 one = free[tails[arc]]++, two = free[heads[arc]]++;
            set(one, heads[arc], capacities[arc], two);
            set(two, tails[arc], 0, one);
        }
    }

    i64 max_flow(i64 source, i64 sink) {
        i64 total = 0;
        while (find_levels(source, sink)) {
            const i64 pushed = push_all(source, sink, total);
            if (pushed == INFINITE) return INFINITE;
            total = pushed;
        }
        return total;
    }

    // Whether the sink cannot be reached from a vertex any more: the source's side of the cut nearest to the sink.
    Owned<bool> near_side(i64 sink) {
        Owned<bool> near(start_.size - 1, true);
        near[sink] = false;
        queue_[0] = sink;
        i64 last = 1;
        for (i64 first = 0; first < last; first++) {
            const i64 vertex = queue_[first];
            for (i64 arc = start_[vertex]; arc < start_[vertex + 1]; arc++) {
                const i64 tail = to_[arc];
                if (residual_[back_[arc]] <= 0 || !near[tail]) continue;
                near[tail] = false;
                queue_[last++] = tail;
            }
        }
        return near;
    }

  private:
    void set(i64 place, i64 to, i64 residual, i64 back) {
        to_[place] = to;
        residual_[place] = residual;
        back_[place] = back;
    }

    // Distances from the source over arcs with room. Returns whether the sink can be reached.
    bool find_levels(i64 source, i64 sink) {
        std::fill(level_.begin(), level_.end(), -1);
        level_[source] = 0;
        queue_[0] = source;
        i64 last = 1;
        for (i64 first = 0; first < last; first++) {
            const i64 vertex = queue_[first];
            for (i64 arc = start_[vertex]; arc < start_[vertex + 1]; arc++) {
                if (residual_[arc] <= 0 || level_[to_[arc]] >= 0) continue;
                level_[to_[arc]] = level_[vertex] + 1;
                queue_[last++] = to_[arc];
            }
        }
        return level_[sink] >= 0;
    }

    // Push what goes along shortest paths. Returns the flow so far, or INFINITE where a path has no finite arc.
    i64 push_all(i64 source, i64 sink, i64 total) {
        Owned<i64> place(start_);
        i64 depth = 0, vertex = source;
        while (true) {
            if (vertex == sink) {
                const i64 pushed = push(depth);
                if (pushed == INFINITE) return INFINITE;
                total += pushed;
                vertex = to_[back_[path_[depth]]];
                continue;
            }
            const i64 arc = next_arc(vertex, place[vertex]);
            if (arc >= 0) {
                path_[depth++] = arc;
                vertex = to_[arc];
                continue;
            }
            if (depth == 0) return total;
            vertex = to_[back_[path_[--depth]]];
            place[vertex] += 1;
        }
    }

    // The next arc with room to the next level, or -1. `place` goes on from where it was.
    i64 next_arc(i64 vertex, i64& place) const {
        for (; place < start_[vertex + 1]; place++)
            if (residual_[place] > 0 && level_[to_[place]] == level_[vertex] + 1) return place;
        return -1;
    }

    // Push along the path as much as it takes, and go back to its first full arc.
    i64 push(i64& depth) {
        i64 pushed = INFINITE;
        for (i64 step = 0; step < depth; step++) pushed = std::min(pushed, residual_[path_[step]]);
        i64 retreat = depth;
        for (i64 step = depth - 1; step >= 0; step--) {
            const i64 arc = path_[step];
            i64& back = residual_[back_[arc]];
            if (residual_[arc] < INFINITE) residual_[arc] -= pushed;  // an infinite arc stays infinite
            back = pushed < INFINITE - back ? back + pushed : INFINITE;
            if (residual_[arc] == 0) retreat = step;
        }
        depth = retreat;
        return pushed;
    }

    Owned<i64> start_, to_, residual_, back_;
    Owned<i64> level_, queue_;
    Owned<i64> path_;  // arcs from the source to where the search stands
};

// The value of the least cut, and which vertices are on the source's side of the one that lies nearest to the sink.
inline std::tuple<i64, Owned<bool>> minimum_cut(i64 count, Ints tails, Ints heads, Ints capacities, i64 source,
                                                i64 sink) {
    Network network(count, tails, heads, capacities);
    const i64 value = network.max_flow(source, sink);
    return {value, network.near_side(sink)};
}

}  // namespace remat::mincut
