// What the search does to an order: computes added, dropped and moved, singly and in groups, each change logged.
//
// Invariant: after every move the order is legal, and `undo` brings back what was there before it.
#pragma once

#include "solvers/annealing/computes.hpp"

namespace remat::annealing {

constexpr i64 NEAR = 64;   // computes by which a group may move
constexpr i64 DEEP = 12;   // computes put in by one move
constexpr i64 PUSHED = 5;  // computes pushed on to make room, at most

inline void log_change(State& s, Change change) { s.changes[s.logged++] = change; }

// Take changes back, all but the first so many.
inline void undo(const Tables& t, State& s, i64 kept) {
    while (s.logged > kept) {
        const Change change = s.changes[--s.logged];
        const Node node = change.node;
        if (!exists(change.slot))
            insert(t, s, node, change.was, change.before);
        else if (!exists(change.was))
            remove(t, s, node, s.run_before(node, change.slot + 1));
        else
            relocate(t, s, node, s.run_before(node, change.slot + 1), change.was, change.before);
    }
}

inline void shift(const Tables& t, State& s, Node node, i64 k, Slot slot, Slot before) {
    const Slot here = s.runs[node][k];
    log_change(s, {node, slot, here, s.before[here]});
    relocate(t, s, node, k, slot, before);
}

// Push the computes after a slot on, up to the next gap. Returns whether there is one near by.
inline bool push(const Tables& t, State& s, Slot before) {
    Slot last = s.after[before];
    i64 many = 1;
    while (s.after[last] - last < 2) {
        last = s.after[last];
        many += 1;
        if (many > PUSHED || last >= s.end_slot()) return false;
    }
    if (s.logged + many > LONGEST - 2) return false;
    const i64 gap = s.after[last] - last;
    Slot slot = last + std::max(i64(1), gap / 2);
    for (; many; many--) {
        const Slot previous = s.before[last];
        const Node node = s.node_at[last];
        shift(t, s, node, s.run_before(node, last + 1), slot, previous);
        last = previous;
        --slot;
    }
    return true;
}

enum class Lean { left, middle, right };

// A free slot right after the compute in a slot, if need be made by pushing others on.
//
// A slot that leans to the right leaves what is free on the left for others that come after `before`.
inline Slot room_after(const Tables& t, State& s, Slot before, Lean lean) {
    if (s.after[before] - before < 2 && !push(t, s, before)) {
        s.crowded = 1;
        return NONE;
    }
    const Slot after = s.after[before];
    if (lean == Lean::right) return after - 1;
    return before + (lean == Lean::left ? 1 : (after - before) / 2);
}

// Compute a node right before the compute that follows a slot. Returns its own slot, if there is room.
inline Slot put(const Tables& t, State& s, Node node, Slot before) {
    if (s.count[node] == MOST || s.logged > LONGEST - 4) return NONE;
    const Slot slot = room_after(t, s, before, Lean::left);
    if (exists(slot)) {
        insert(t, s, node, slot, before);
        log_change(s, {node, slot, NONE, NONE});
    }
    return slot;
}

inline void take(const Tables& t, State& s, Node node, i64 k) {
    const Slot slot = s.runs[node][k];
    log_change(s, {node, NONE, slot, s.before[slot]});
    remove(t, s, node, k);
}

// Take a repeated compute out, and those whose results only it read; nothing if the first may not go.
inline void drop(const Tables& t, State& s, Node node, i64 k) {
    if (!s.is_spare(node, k) || (k == 0 && !is_unread(t, s, node, 0))) return;
    i64 top = s.logged;
    take(t, s, node, k);
    for (; top < s.logged; top++) {
        const Node gone = s.changes[top].node;
        const Slot slot = s.changes[top].was;
        for (Value value : t.reads[gone]) {
            const Node parent = t.writer[value];
            const i64 of = s.run_before(parent, slot);
            if (of < 0 || !s.is_spare(parent, of) || s.logged > LONGEST - 4) continue;
            if (is_unread(t, s, parent, of)) take(t, s, parent, of);
        }
    }
}

inline i64 any_run(State& s, Node node) { return s.random.below(s.count[node]); }

// Drop some compute of some node that is computed more than once.
inline void drop_any(const Tables& t, State& s) {
    if (!s.repeated || s.logged >= LONGEST / 2) return;
    const Node node = s.again[s.random.below(s.repeated)];
    drop(t, s, node, any_run(s, node));
}

// Compute again what some compute reads, right before it, and perhaps what that reads in turn.
inline void repeat(const Tables& t, State& s) {
    const Node node{s.random.below(t.nodes())};
    const auto reads = t.reads[node];
    if (reads.size == 0) return;
    Slot anchor = s.runs[node][any_run(s, node)];
    std::array<Value, LONGEST> stack;
    stack[0] = reads[s.random.below(reads.size)];
    i64 top = 1;
    while (top && s.logged < DEEP) {
        const Node writer = t.writer[stack[--top]];
        const Slot before = s.before[anchor];
        if (t.once[writer] || s.node_at[before] == writer) continue;
        anchor = put(t, s, writer, before);
        if (!exists(anchor)) return;
        for (Value value : t.reads[writer]) {
            const i64 of = s.run_before(t.writer[value], anchor);
            const bool ends_here = s.ends[value][of] == anchor;  // nothing reads it later: it might be made again too
            if (top < LONGEST && s.random.uniform() < (ends_here ? 0.5 : 0.05)) stack[top++] = value;
        }
    }
}

struct Bounds {
    Slot low, high;
};

// The slots between which a compute may stand with all that is read staying as it is.
inline Bounds bounds_of(const Tables& t, const State& s, Node node, i64 k) {
    const Slot here = s.runs[node][k];
    Slot low = k == 0 ? Slot(0) : s.runs[node][k - 1];
    if (k)
        for (Value value : t.writes[node]) low = std::max(low, s.ends[value][k - 1]);
    Slot high = first_read(t, s, node, here);
    if (k + 1 < s.count[node]) high = std::min(high, s.runs[node][k + 1]);
    for (Value value : t.reads[node]) {
        const Node writer = t.writer[value];
        const i64 of = s.run_before(writer, here);
        low = std::max(low, s.runs[writer][of]);
        if (of + 1 < s.count[writer]) high = std::min(high, s.runs[writer][of + 1]);
    }
    return {low, high};
}

// Move a compute to another place between what it reads and who reads it.
inline void move(const Tables& t, State& s, Node node, i64 k) {
    const Slot here = s.runs[node][k];
    const auto [low, high] = bounds_of(t, s, node, k);
    const i64 kind = s.random.below(4);
    Slot target;
    Lean lean = Lean::middle;
    if (kind == 0) {
        target = low;
        lean = Lean::right;
    } else if (kind == 1) {
        target = s.before[high];
        lean = Lean::left;
    } else {
        target = low + s.random.below(high - low);
        while (!s.is_taken(target) && target > Slot(0)) --target;
    }
    if (target == here || target == s.before[here] || s.logged > LONGEST - 4) return;
    const Slot slot = room_after(t, s, target, lean);
    if (exists(slot)) shift(t, s, node, k, slot, target);
}

// A node other than the last, which reads the outputs.
inline Node any_inner(const Tables& t, State& s) { return Node(s.random.below(t.nodes() - 1)); }

inline void move_any(const Tables& t, State& s) {
    const Node node = any_inner(t, s);
    move(t, s, node, any_run(s, node));
}

// Move a later compute of some node that is computed more than once.
inline void move_repeated(const Tables& t, State& s) {
    if (!s.repeated) return;
    const Node node = s.again[s.random.below(s.repeated)];
    move(t, s, node, 1 + s.random.below(s.count[node] - 1));
}

// Move a compute, and then some of those that it reads from.
inline void move_with(const Tables& t, State& s) {
    const Node node = any_inner(t, s);
    const i64 k = any_run(s, node);
    move(t, s, node, k);
    if (s.logged == 0) return;
    for (Value value : t.reads[node]) {
        const Node writer = t.writer[value];
        if (s.random.uniform() < 0.5) move(t, s, writer, s.run_before(writer, s.runs[node][k]));
    }
}

// Move the compute in a slot behind the one in slot `before`, if that may be. Returns where it stands then.
inline Slot move_behind(const Tables& t, State& s, Slot slot, Slot before) {
    if (slot == before || slot == s.after[before]) return NONE;
    const Node node = s.node_at[slot];
    const i64 k = s.run_before(node, slot + 1);
    const auto [low, high] = bounds_of(t, s, node, k);
    if (before < low || before >= high || s.after[before] > high || s.logged > LONGEST - 4) return NONE;
    const Slot free = room_after(t, s, before, Lean::right);
    if (exists(free)) shift(t, s, node, k, free, before);
    return free;
}

inline void move_group_up(const Tables& t, State& s, Slot slot, i64 many, i64 far) {
    Slot target = s.before[slot];
    for (; far; far--)
        if (target > Slot(0)) target = s.before[target];
    for (; many; many--) {
        if (slot >= s.end_slot()) return;
        const Slot following = s.after[slot];
        target = move_behind(t, s, slot, target);
        if (!exists(target) || !s.is_taken(following)) return;  // the next was pushed on, to make room
        slot = following;
    }
}

inline void move_group_down(const Tables& t, State& s, Slot slot, i64 many, i64 far) {
    Slot target = slot;
    for (; far; far--)
        if (s.after[target] < s.end_slot()) target = s.after[target];
    for (; many; many--) {
        if (slot <= Slot(0) || slot == target || slot >= s.end_slot()) return;
        const Slot following = s.before[slot];
        if (!exists(move_behind(t, s, slot, target))) return;
        slot = following;
    }
}

// Move some computes that follow each other to a place not far away, in their order.
inline void move_group(const Tables& t, State& s) {
    const Node node = any_inner(t, s);
    const Slot slot = s.runs[node][any_run(s, node)];
    const i64 many = 2 + s.random.below(6), far = 1 + s.random.below(NEAR);
    if (s.random.uniform() < 0.5)
        move_group_up(t, s, slot, many, far);
    else
        move_group_down(t, s, slot, many, far);
}

}  // namespace remat::annealing
