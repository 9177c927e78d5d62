// Room made where an order takes more than the budget: a copy held there is let go and made again before it is next
// read, with all that this needs and that would have to be held there for it.
//
// Invariant: no copy comes to be held across the slot that is cleared, but those of nodes that run once.
#pragma once

#include "solvers/annealing/moves.hpp"

namespace remat::annealing {

constexpr i64 DRAWS = 500;  // of values, at most, to find one that is held across a slot
constexpr i64 CHAIN = 120;   // changes of one chain of computes, about

inline bool takes_too_much(State& s) { return s.span(1).maximum > s.budget; }

struct Overfull {
    i64 slot, over;  // bytes over budget
};

// Some slot that takes more than the budget; one must be there.
inline Overfull pick_overfull(State& s) {
    i64 above = s.span(1).added, node = 1;
    while (node < s.blocks()) {
        const bool left = s.span(2 * node).maximum + above > s.budget;
        const bool right = s.span(2 * node + 1).maximum + above > s.budget;
        node = 2 * node + (left && right ? s.random.below(2) : !left);
        above += s.span(node).added;
    }
    const Ints held = s.held_in(node);
    i64 found = -1, many = 0;
    for (i64 slot = 0; slot < WIDE; slot++)
        if (held[slot] + above > s.budget && s.random.below(++many) == 0) found = slot;
    return {(node - s.blocks()) * WIDE + found, held[found] + above - s.budget};
}

// Whether what stands before a slot has a copy that is held after it.
inline bool is_held_across(const Tables& t, const State& s, i64 value, i64 slot) {
    const i64 k = s.run_before(t.writer[value], slot);
    return k >= 0 && s.end(value, k) > slot;
}

// A value held across a slot, or -1: one that is as large as what is over, or a smaller one seldom.
inline i64 pick_held(const Tables& t, State& s, const Overfull& full) {
    for (i64 draw = 0; draw < DRAWS; draw++) {
        const i64 value = s.random.below(t.values()), size = t.size[value];
        if (size < full.over && static_cast<double>(size) <= s.random.uniform() * static_cast<double>(full.over)) continue;
        if (!t.once[t.writer[value]] && is_held_across(t, s, value, full.slot)) return value;
    }
    return -1;
}

// Compute a node again right before the compute in slot `anchor`, and before it what it needs and cannot have otherwise
// without holding more across the slot to be cleared.
inline void make_after(const Tables& t, State& s, i64 node, i64 slot, i64 anchor) {
    s.stack[0] = node;
    i64 top = 1;
    while (top && s.logged < CHAIN) {
        i64* last = std::max_element(s.stack.begin(), s.stack.begin() + top);  // what needs others comes behind them
        const i64 next = *last, before = s.before[anchor];
        *last = s.stack[--top];
        if (s.node_at[before] == next) continue;
        for (i64 value : t.reads_of(next)) {
            const i64 writer = t.writer[value];
            const bool is_there = s.run(writer, s.run_before(writer, anchor)) >= slot || is_held_across(t, s, value, slot);
            const bool is_asked = std::find(s.stack.begin(), s.stack.begin() + top, writer) != s.stack.begin() + top;
            if (!is_there && !is_asked && !t.once[writer] && top < LONGEST) s.stack[top++] = writer;
        }
        anchor = put(t, s, next, before);
        if (anchor < 0) return;
    }
}

// Clear some slot over budget of a copy that is held there.
inline void make_room(const Tables& t, State& s) {
    if (!takes_too_much(s) || s.logged > LONGEST / 2) return;
    const Overfull full = pick_overfull(s);
    const i64 value = pick_held(t, s, full);
    if (value < 0) return;
    const i64 node = t.writer[value], slot = full.slot;
    make_after(t, s, node, slot, first_read(t, s, node, slot));
    const i64 k = s.run_before(node, slot);
    if (s.is_spare(node, k) && s.logged < LONGEST / 2 && is_unread(t, s, node, k)) drop(t, s, node, k);
}

}  // namespace remat::annealing
