// Room made where an order takes more than the budget: a copy held there is let go and made again before it is next
// read, with all that this needs and that would have to be held there for it.
//
// Invariant: no copy comes to be held across the slot that is cleared, but those of nodes that run once.
#pragma once

#include "solvers/annealing/moves.hpp"

namespace remat::annealing {

constexpr i64 DRAWS = 500;  // of values, at most, to find one that is held across a slot
constexpr i64 CHAIN = 120;   // changes of one chain of computes, about

inline bool takes_too_much(State& s) { return s.span(ROOT).maximum > s.budget; }

struct Overfull {
    Slot slot;
    i64 over;  // bytes over budget
};

// Some slot that takes more than the budget; one must be there.
inline Overfull pick_overfull(State& s) {
    Part part = ROOT;
    i64 added = s.span(ROOT).added;
    while (!s.is_block(part)) {
        const bool left = s.span(below(part, 0)).maximum + added > s.budget;
        const bool right = s.span(below(part, 1)).maximum + added > s.budget;
        part = below(part, left && right ? s.random.below(2) : !left);
        added += s.span(part).added;
    }
    Slot found = NONE, slot = s.first_of(part);
    for (i64 end = 1, many = 0; end <= WIDE; end++, ++slot)
        if (s.held[slot] + added > s.budget && s.random.below(++many) == 0) found = slot;
    return {found, s.held[found] + added - s.budget};
}

// Whether what stands before a slot has a copy that is held after it.
inline bool is_held_across(const Tables& t, const State& s, Value value, Slot slot) {
    const i64 k = s.run_before(t.writer[value], slot);
    return k >= 0 && s.ends[value][k] > slot;
}

// A value held across a slot, if one is found: one that is as large as what is over, or a smaller one seldom.
inline Value pick_held(const Tables& t, State& s, const Overfull& full) {
    for (i64 draw = 0; draw < DRAWS; draw++) {
        const Value value{s.random.below(t.values())};
        const i64 size = t.size[value];
        if (size < full.over && static_cast<double>(size) <= s.random.uniform() * static_cast<double>(full.over)) continue;
        if (!t.once[t.writer[value]] && is_held_across(t, s, value, full.slot)) return value;
    }
    return NONE;
}

// Compute a node again right before the compute in slot `anchor`, and before it what it needs and cannot have otherwise
// without holding more across the slot to be cleared.
inline void make_after(const Tables& t, State& s, Node node, Slot slot, Slot anchor) {
    std::array<Node, LONGEST> stack;
    stack[0] = node;
    i64 top = 1;
    while (top && s.logged < CHAIN) {
        Node* last = std::max_element(stack.begin(), stack.begin() + top);  // what needs others comes behind them
        const Node next = *last;
        const Slot before = s.before[anchor];
        *last = stack[--top];
        if (s.node_at[before] == next) continue;
        for (Value value : t.reads[next]) {
            const Node writer = t.writer[value];
            const bool is_there =
                s.runs[writer][s.run_before(writer, anchor)] >= slot || is_held_across(t, s, value, slot);
            const bool is_asked = std::find(stack.begin(), stack.begin() + top, writer) != stack.begin() + top;
            if (!is_there && !is_asked && !t.once[writer] && top < LONGEST) stack[top++] = writer;
        }
        anchor = put(t, s, next, before);
        if (!exists(anchor)) return;
    }
}

// Clear some slot over budget of a copy that is held there.
inline void make_room(const Tables& t, State& s) {
    if (!takes_too_much(s) || s.logged > LONGEST / 2) return;
    const Overfull full = pick_overfull(s);
    const Value value = pick_held(t, s, full);
    if (!exists(value)) return;
    const Node node = t.writer[value];
    const Slot slot = full.slot;
    make_after(t, s, node, slot, first_read(t, s, node, slot));
    const i64 k = s.run_before(node, slot);
    if (s.is_spare(node, k) && s.logged < LONGEST / 2 && is_unread(t, s, node, k)) drop(t, s, node, k);
}

}  // namespace remat::annealing
