// Computes put into an order and taken out, the memory of every slot kept as it changes.
//
// Invariant: memory is counted as `measure` counts it or higher (a write takes a read's place only where the first read
// that allows it ends there, and never if it is an output or optional; what is still a view is counted in full); every
// operation is undone exactly by its opposite.
#pragma once

#include "solvers/annealing/tree.hpp"
#include "solvers/orders/measure.hpp"

namespace remat::annealing {

// The last slot between `low` and `high` at which a value is read, or `low`.
inline Slot last_read(const Tables& t, const State& s, Value value, Slot low, Slot high) {
    Slot best = low;
    for (Node user : t.users[value]) {
        const i64 k = s.run_before(user, high);
        if (k >= 0) best = std::max(best, s.runs[user][k]);
    }
    return best;
}

// The first slot after this one at which anything that a node writes is read, or the slot of the end.
inline Slot first_read(const Tables& t, const State& s, Node node, Slot slot) {
    Slot best = s.end_slot();
    for (Value value : t.writes[node])
        for (Node user : t.users[value]) {
            const auto& runs = s.runs[user];
            for (i64 k = 0; k < s.count[user]; k++)
                if (runs[k] > slot) {
                    best = std::min(best, runs[k]);
                    break;
                }
        }
    return best;
}

// Whether nobody reads what a node's k-th compute writes.
inline bool is_unread(const Tables& t, const State& s, Node node, i64 k) {
    const Slot made = s.runs[node][k];
    for (Value value : t.writes[node])
        if (s.ends[value][k] != made) return false;
    return true;
}

// The last slot at which a copy is in memory. It is before `made` if the copy is left out.
inline Slot last_held(const Tables& t, const State& s, Value value, Slot made, Slot end) {
    if (end > made) return end;
    if (t.optional[value]) return made - 1;
    return t.unread_stay ? s.end_slot() : made;
}

// What the compute at a slot writes in the place of this value, if it is the last to read it.
inline i64 saved_at(const Tables& t, const State& s, Value value, Slot slot) {
    return t.saved_by(s.node_at[slot], value);
}

// Add a whole copy to the memory in use (`sign` 1), or take it away (-1).
inline void hold(const Tables& t, State& s, Value value, Slot made, Slot end, i64 sign) {
    const i64 size = t.size[value];
    if (size == 0) return;
    const Slot last = last_held(t, s, value, made, end);
    if (last >= made) add(s, made, last, sign * size);
    if (end > made && s.shared[value]) bump(s, end, -sign * saved_at(t, s, value, end));
}

// Let a copy end elsewhere.
inline void end_at(const Tables& t, State& s, Value value, i64 k, Slot made, Slot end) {
    const Slot old = s.ends[value][k];
    if (old == end) return;
    s.ends[value][k] = end;
    const i64 size = t.size[value];
    if (size == 0) return;
    const Slot before = last_held(t, s, value, made, old), after = last_held(t, s, value, made, end);
    if (after > before)
        add(s, before + 1, after, size);
    else if (before > after)
        add(s, after + 1, before, -size);
    if (!s.shared[value]) return;
    if (old > made) bump(s, old, saved_at(t, s, value, old));
    if (end > made) bump(s, end, -saved_at(t, s, value, end));
}

inline void join(State& s, Slot before, Slot after) {
    s.after[before] = after;
    s.before[after] = before;
}

inline void link(const Tables& t, State& s, Node node, Slot slot, Slot before) {
    const Slot after = s.after[before];
    join(s, before, slot);
    join(s, slot, after);
    s.node_at[slot] = node;
    s.steps += 1;
    s.total += t.cost[node];
    s.count[node] += 1;
    if (s.count[node] == 2) {
        s.again[s.repeated] = node;
        s.place[node] = s.repeated;
        s.repeated += 1;
    }
}

inline void unlink(const Tables& t, State& s, Node node, Slot slot) {
    join(s, s.before[slot], s.after[slot]);
    s.node_at[slot] = NONE;
    s.steps -= 1;
    s.total -= t.cost[node];
    s.count[node] -= 1;
    if (s.count[node] == 1) {
        s.repeated -= 1;
        const Node other = s.again[s.repeated];
        s.place[other] = s.place[node];
        s.again[s.place[node]] = other;
    }
}

// A copy of what is read from the order at `slot` lives at least to there.
inline void reach_readers(const Tables& t, State& s, Node node, Slot slot) {
    for (Value value : t.reads[node]) {
        const Node writer = t.writer[value];
        const i64 k = s.run_before(writer, slot);
        if (s.ends[value][k] < slot) end_at(t, s, value, k, s.runs[writer][k], slot);
    }
}

// Compute a node in a free slot, right after the compute in slot `before`.
inline void insert(const Tables& t, State& s, Node node, Slot slot, Slot before) {
    const i64 k = s.run_before(node, slot), count = s.count[node];
    auto& runs = s.runs[node];
    for (i64 place = count; place > k + 1; place--) runs[place] = runs[place - 1];
    runs[k + 1] = slot;
    link(t, s, node, slot, before);
    bump(s, slot, EMPTY + t.workspace[node]);
    for (Value value : t.writes[node]) {
        auto& ends = s.ends[value];
        for (i64 place = count; place > k + 1; place--) ends[place] = ends[place - 1];
        Slot end = slot;
        if (k >= 0 && ends[k] > slot) {
            end = ends[k];
            end_at(t, s, value, k, runs[k], last_read(t, s, value, runs[k], slot));
        }
        ends[k + 1] = end;
        hold(t, s, value, slot, end, 1);
    }
    reach_readers(t, s, node, slot);
}

// Undo `insert`: remove a node's k-th compute. What read it reads the one before, if there is one.
inline void remove(const Tables& t, State& s, Node node, i64 k) {
    const i64 count = s.count[node];
    auto& runs = s.runs[node];
    const Slot slot = runs[k];
    for (Value value : t.writes[node]) {
        auto& ends = s.ends[value];
        const Slot end = ends[k];
        hold(t, s, value, slot, end, -1);
        if (k > 0 && end > slot) end_at(t, s, value, k - 1, runs[k - 1], end);
        for (i64 place = k; place < count - 1; place++) ends[place] = ends[place + 1];
    }
    for (i64 place = k; place < count - 1; place++) runs[place] = runs[place + 1];
    s.count[node] = count - 1;
    for (Value value : t.reads[node]) {
        const Node writer = t.writer[value];
        const i64 of = s.run_before(writer, slot);
        if (s.ends[value][of] != slot) continue;
        const Slot made = s.runs[writer][of];
        end_at(t, s, value, of, made, last_read(t, s, value, made, s.next_run(writer, of)));
    }
    bump(s, slot, -EMPTY - t.workspace[node]);
    s.count[node] = count;
    unlink(t, s, node, slot);
}

// A node stands in both slots until all is reckoned, but only the new one is linked.
inline void step_over(State& s, Node node, Slot here, Slot slot, Slot before) {
    join(s, s.before[here], s.after[here]);
    const Slot after = s.after[before];
    join(s, before, slot);
    join(s, slot, after);
    s.node_at[slot] = node;
}

// Move a node's k-th compute to a free slot right after the compute in slot `before`.
//
// In between there must be no reader of what it writes, no compute of what it reads, and none of its own.
inline void relocate(const Tables& t, State& s, Node node, i64 k, Slot slot, Slot before) {
    const Slot here = s.runs[node][k];
    s.runs[node][k] = slot;
    step_over(s, node, here, slot, before);
    for (Value value : t.writes[node]) {
        const i64 size = t.size[value];
        if (s.ends[value][k] == here) {
            hold(t, s, value, here, here, -1);
            s.ends[value][k] = slot;
            hold(t, s, value, slot, slot, 1);
        } else if (size && slot < here) {
            add(s, slot, here - 1, size);
        } else if (size) {
            add(s, here, slot - 1, -size);
        }
    }
    for (Value value : t.reads[node]) {
        const Node writer = t.writer[value];
        const i64 of = s.run_before(writer, slot);
        const Slot made = s.runs[writer][of], end = s.ends[value][of];
        if (end == here) {
            const bool later = slot > here;
            end_at(t, s, value, of, made, later ? slot : last_read(t, s, value, made, s.next_run(writer, of)));
        } else if (end < slot) {
            end_at(t, s, value, of, made, slot);
        }
    }
    const i64 workspace = EMPTY + t.workspace[node];
    bump(s, slot, workspace);
    bump(s, here, -workspace);
    s.node_at[here] = NONE;
}

// How much more is held at each slot than at the one before.
inline Owned<i64, Slot> held_changes(const Tables& t, const State& s) {
    Owned<i64, Slot> change(s.slots + 1, 0);
    for (Value value : t.size.places()) {
        const i64 size = t.size[value];
        const Node writer = t.writer[value];
        for (i64 k = 0; size && k < s.count[writer]; k++) {
            const Slot made = s.runs[writer][k], end = s.ends[value][k], last = last_held(t, s, value, made, end);
            if (last >= made) {
                change[made] += size;
                change[last + 1] -= size;
            }
            if (end > made && s.shared[value]) {
                const i64 saved = saved_at(t, s, value, end);
                change[end] -= saved;
                change[end + 1] += saved;
            }
        }
    }
    return change;
}

inline void clear(State& s) {
    s.held.fill(-EMPTY);
    s.node_at.fill(NONE);
    s.count.fill(0);
    s.steps = s.total = s.repeated = 0;
    join(s, Slot(0), Slot(s.slots - 1));
}

// Put an order into an empty or a used state, spread evenly. A node's computes beyond the most there may be are left
// out. The order ends with the node that reads the outputs.
inline void fill(const Tables& t, State& s, Order order) {
    clear(s);
    Slot before{0};
    for (Step step : order.places()) {
        const Node node = order[step];
        const i64 count = s.count[node];
        if (count == MOST) continue;
        const bool is_end = i64(step) == order.size - 1;
        const Slot slot = is_end ? s.end_slot() : Slot(1 + (i64(step) + 1) * (s.slots - 4) / (order.size + 1));
        s.runs[node][count] = slot;
        for (Value value : t.writes[node]) s.ends[value][count] = slot;
        for (Value value : t.reads[node]) s.ends[value][s.count[t.writer[value]] - 1] = slot;
        link(t, s, node, slot, before);
        s.held[slot] = t.workspace[node];
        before = slot;
    }
    const auto change = held_changes(t, s);
    i64 held = 0;
    for (Slot slot : s.held.places()) {
        held += change[slot];
        s.held[slot] += held;
    }
    grow(s);
}

// The order of computes, with the last node, which only reads the outputs, if it is to end with that.
inline Owned<Node, Step> order_of(const State& s, bool ended = false) {
    Owned<Node, Step> order(s.steps - !ended);
    Slot slot = s.after[Slot(0)];
    for (Node& node : order) {
        node = s.node_at[slot];
        slot = s.after[slot];
    }
    return order;
}

// Spread the computes anew where the gaps between them are used up.
inline void spread(const Tables& t, State& s) {
    s.crowded = 0;
    fill(t, s, order_of(s, true));
}

// An order in a state of its own, with room for so many slots. `peak`: what the order needs where the room is to grow by
// what the state counts too much for it; or -1. An order that cannot run is refused.
inline State loaded(const Tables& t, Order order, i64 slots, Room room, i64 peak, Kept kept, i64 seed) {
    require(orders::names_nodes(t, order) && orders::ends_of(t, order).legal && order.last() == Node(t.nodes() - 1),
            "an order that cannot run");
    require(kept >= Kept::nothing && kept <= Kept::order, "nothing that is known to be kept");
    State s(t, slots, room, kept, seed);
    fill(t, s, order);
    if (peak >= 0) {
        const i64 hidden = s.span(ROOT).maximum - peak;
        s.budget += hidden;
        s.roof += hidden;
        fill(t, s, order);
    }
    return s;
}

inline bool is_full(const State& s) { return s.steps > s.slots / 3; }

}  // namespace remat::annealing
