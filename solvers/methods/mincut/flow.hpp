// Maximum flow in exact integers, by Dinic's algorithm.
//
// Invariant: no arithmetic is rounded; a minimum cut below INFINITE crosses no infinite arc.
#pragma once

#include <tuple>

#include "solvers/native/array.hpp"

namespace remat::mincut {

enum class Vertex : i64 {};
enum class Arc : i64 {};  // or its reverse: they lie by their tails

constexpr i64 INFINITE = i64(1) << 62;

class Network {
  public:
    Network(i64 count, Array<const Vertex> tails, Array<const Vertex> heads, Ints capacities)
        : start_(count + 1, Arc(0)), to_(2 * tails.size), residual_(2 * tails.size), back_(2 * tails.size),
          level_(count), queue_(count), path_(count) {
        for (i64 arc : tails.places()) {
            ++start_[tails[arc] + 1];
            ++start_[heads[arc] + 1];
        }
        for (Vertex vertex : level_.places()) start_[vertex + 1] = start_[vertex + 1] + i64(start_[vertex]);
        Owned<Arc, Vertex> free(start_);
        for (i64 arc : tails.places()) {
            const Arc one = free[tails[arc]]++, two = free[heads[arc]]++;
            set(one, heads[arc], capacities[arc], two);
            set(two, tails[arc], 0, one);
        }
    }

    i64 max_flow(Vertex source, Vertex sink) {
        i64 total = 0;
        while (find_levels(source, sink)) {
            const i64 pushed = push_all(source, sink, total);
            if (pushed == INFINITE) return INFINITE;
            total = pushed;
        }
        return total;
    }

    // Whether the sink cannot be reached from a vertex any more: the source's side of the cut nearest to the sink.
    Owned<bool, Vertex> near_side(Vertex sink) {
        Owned<bool, Vertex> near(level_.size, true);
        near[sink] = false;
        queue_[0] = sink;
        i64 last = 1;
        for (i64 first = 0; first < last; first++) {
            const Vertex vertex = queue_[first];
            for (Arc arc : arcs_of(vertex)) {
                const Vertex tail = to_[arc];
                if (residual_[back_[arc]] <= 0 || !near[tail]) continue;
                near[tail] = false;
                queue_[last++] = tail;
            }
        }
        return near;
    }

  private:
    Range<Arc> arcs_of(Vertex vertex) const { return {start_[vertex], start_[vertex + 1]}; }

    void set(Arc place, Vertex to, i64 residual, Arc back) {
        to_[place] = to;
        residual_[place] = residual;
        back_[place] = back;
    }

    // Distances from the source over arcs with room. Returns whether the sink can be reached.
    bool find_levels(Vertex source, Vertex sink) {
        level_.fill(-1);
        level_[source] = 0;
        queue_[0] = source;
        i64 last = 1;
        for (i64 first = 0; first < last; first++) {
            const Vertex vertex = queue_[first];
            for (Arc arc : arcs_of(vertex)) {
                if (residual_[arc] <= 0 || level_[to_[arc]] >= 0) continue;
                level_[to_[arc]] = level_[vertex] + 1;
                queue_[last++] = to_[arc];
            }
        }
        return level_[sink] >= 0;
    }

    // Push what goes along shortest paths. Returns the flow so far, or INFINITE where a path has no finite arc.
    i64 push_all(Vertex source, Vertex sink, i64 total) {
        Owned<Arc, Vertex> place(start_);
        i64 depth = 0;
        Vertex vertex = source;
        while (true) {
            if (vertex == sink) {
                const i64 pushed = push(depth);
                if (pushed == INFINITE) return INFINITE;
                total += pushed;
                vertex = to_[back_[path_[depth]]];
                continue;
            }
            const Arc arc = next_arc(vertex, place[vertex]);
            if (exists(arc)) {
                path_[depth++] = arc;
                vertex = to_[arc];
                continue;
            }
            if (depth == 0) return total;
            vertex = to_[back_[path_[--depth]]];
            ++place[vertex];
        }
    }

    // The next arc with room to the next level, if there is one. `place` goes on from where it was.
    Arc next_arc(Vertex vertex, Arc& place) const {
        for (; place < start_[vertex + 1]; ++place)
            if (residual_[place] > 0 && level_[to_[place]] == level_[vertex] + 1) return place;
        return NONE;
    }

    // Push along the path as much as it takes, and go back to its first full arc.
    i64 push(i64& depth) {
        i64 pushed = INFINITE;
        for (i64 step = 0; step < depth; step++) pushed = std::min(pushed, residual_[path_[step]]);
        i64 retreat = depth;
        for (i64 step = depth - 1; step >= 0; step--) {
            const Arc arc = path_[step];
            i64& back = residual_[back_[arc]];
            if (residual_[arc] < INFINITE) residual_[arc] -= pushed;  // an infinite arc stays infinite
            back = pushed < INFINITE - back ? back + pushed : INFINITE;
            if (residual_[arc] == 0) retreat = step;
        }
        depth = retreat;
        return pushed;
    }

    Owned<Arc, Vertex> start_;
    Owned<Vertex, Arc> to_;
    Owned<i64, Arc> residual_;
    Owned<Arc, Arc> back_;  // its reverse
    Owned<i64, Vertex> level_;
    Owned<Vertex> queue_;
    Owned<Arc> path_;  // from the source to where the search stands
};

// The value of the least cut, and which vertices are on the source's side of the one that lies nearest to the sink.
inline std::tuple<i64, Owned<bool, Vertex>> minimum_cut(i64 count, Array<const Vertex> tails, Array<const Vertex> heads,
                                                        Ints capacities, Vertex source, Vertex sink) {
    require(all_as_long(tails.size, heads, capacities), "arcs without a head or a capacity");
    const auto is_vertex = [&](Vertex one) { return exists(one) && i64(one) < count; };
    require(all_below(tails, count) && all_below(heads, count) && is_vertex(source) && is_vertex(sink),
            "a vertex that there is not");
    Network network(count, tails, heads, capacities);
    const i64 value = network.max_flow(source, sink);
    return {value, network.near_side(sink)};
}

}  // namespace remat::mincut
