// The memory in use at every slot of an order, as a tree of maxima over blocks of slots: bytes are added to a range, and
// the bytes over budget are asked for.
//
// What a slot counts is a function of its memory with straight pieces: nothing up to the budget, then each byte once,
// and above the roof many times. So each node of the tree keeps what all below it counted together when they were last
// asked (`over`), how much that changes with each byte added to all of them (`slope`), and how many bytes until one of
// them comes to another piece (`up`, `down`). When the tree is asked again, only those nodes are looked at in which
// something was added to some slots and not to others, or a slot crosses.
//
// Invariant: memory at a slot is what is held there and what was `added` to all nodes above it; a slot without a compute
// is so far below zero that it never counts. What a node keeps is true of what was added above it then (`above`), and
// only while it is `known`; a change makes everything above it unknown.
#pragma once

#include "solvers/annealing/state.hpp"

namespace remat::annealing {

constexpr i64 STEEP = 100;        // what a byte above the roof counts besides
constexpr i64 FAR = 2 * EMPTY;    // there is no other piece that way

inline void gather(State& s, i64 node) {
    Span& span = s.span(node);
    span.maximum = std::max(s.span(2 * node).maximum, s.span(2 * node + 1).maximum) + span.added;
    span.known = 0;
}

// What stands above a node whose maximum and ignorance are as they were stays as it is: what is known there is known by
// maxima alone.
inline void gather_up(State& s, i64 node) {
    for (; node; node >>= 1) {
        const i64 known = s.span(node).known, most = s.span(node).maximum;
        gather(s, node);
        if (!known && s.span(node).maximum == most) return;
    }
}

inline void look_at_block(State& s, i64 block) {
    const Ints held = s.held_in(block);
    i64 most = held[0];
    for (i64 slot = 1; slot < WIDE; slot++) most = std::max(most, held[slot]);
    Span& span = s.span(block);
    span.maximum = most + span.added;
    span.known = 0;
}

// Add to some slots of one block, both ends included.
inline void add_within(State& s, i64 block, i64 first, i64 last, i64 amount) {
    const Ints held = s.held_in(block);
    i64 most = held[first];
    for (i64 slot = first; slot <= last; slot++) {
        most = std::max(most, held[slot]);
        held[slot] += amount;
    }
    Span& span = s.span(block);
    span.known = 0;
    if (amount > 0)
        span.maximum = std::max(span.maximum, most + amount + span.added);
    else if (most + span.added == span.maximum)
        look_at_block(s, block);
}

// Add to all slots below a node: what it keeps was so with more above it.
inline void add_below(State& s, i64 node, i64 amount) {
    Span& span = s.span(node);
    span.maximum += amount;
    span.added += amount;
    span.above -= amount;
}

// Add to the slots `first` to `last`, both included.
inline void add(State& s, i64 first, i64 last, i64 amount) {
    i64 left = s.blocks() + first / WIDE, right = s.blocks() + last / WIDE;
    if (left == right) {
        add_within(s, left, first % WIDE, last % WIDE, amount);
        gather_up(s, left >> 1);
        return;
    }
    add_within(s, left, first % WIDE, WIDE - 1, amount);
    add_within(s, right, 0, last % WIDE, amount);
    while (left ^ right ^ 1) {
        if (!(left & 1)) add_below(s, left ^ 1, amount);
        if (right & 1) add_below(s, right ^ 1, amount);
        left >>= 1;
        right >>= 1;
        gather(s, left);
        gather(s, right);
    }
    gather_up(s, left >> 1);
}

// Add to one slot.
inline void bump(State& s, i64 slot, i64 amount) {
    const i64 block = s.blocks() + slot / WIDE;
    add_within(s, block, slot % WIDE, slot % WIDE, amount);
    gather_up(s, block >> 1);
}

// Build the whole tree from its slots.
inline void grow(State& s) {
    for (i64 node = 2 * s.blocks() - 1; node > 0; node--) {
        s.span(node).added = 0;
        if (node < s.blocks())
            gather(s, node);
        else
            look_at_block(s, node);
    }
}

// Whether a node can say what it counts without asking those below it, so much being added above it.
inline bool answers(State& s, i64 node, i64 above) {
    Span& span = s.span(node);
    const i64 more = above - span.above;
    const bool known = span.known != 0;
    span.above = above;
    span.known = 1;
    const i64 room = s.budget - span.maximum - above;
    if (room >= 0) {
        span.over = span.slope = 0;
        span.up = room;
        span.down = FAR;
        return true;
    }
    if (known && -span.down <= more && more <= span.up) {
        span.over += more * span.slope;
        span.up -= more;
        span.down += more;
        return true;
    }
    return false;
}

inline void count_block(State& s, i64 block) {
    Span& span = s.span(block);
    const i64 above = span.above + span.added;
    const Ints held = s.held_in(block);
    i64 over = 0, slope = 0, up = FAR, down = FAR;
    for (i64 slot = 0; slot < WIDE; slot++) {
        const i64 memory = held[slot] + above;
        if (memory <= s.budget) {
            up = std::min(up, s.budget - memory);
            continue;
        }
        over += memory - s.budget;
        slope += 1;
        down = std::min(down, memory - s.budget);
        if (memory <= s.roof) {
            up = std::min(up, s.roof - memory);
        } else {
            over += STEEP * (memory - s.roof);
            slope += STEEP;
            down = std::min(down, memory - s.roof);
        }
    }
    span.over = over;
    span.slope = slope;
    span.up = up;
    span.down = down;
}

inline void sum_up(State& s, i64 node) {
    Span& span = s.span(node);
    const Span &one = s.span(2 * node), &other = s.span(2 * node + 1);
    span.over = one.over + other.over;
    span.slope = one.slope + other.slope;
    span.up = std::min(one.up, other.up);
    span.down = std::min(one.down, other.down);
}

// The bytes over budget, summed over all computes, those above the roof many times.
inline i64 excess(State& s) {
    i64 done = 0, many = 0;
    if (!answers(s, 1, 0)) s.asked[many++] = 1;
    while (done < many) {  // parents stand before their children
        const i64 node = s.asked[done++];
        if (node >= s.blocks()) {
            count_block(s, node);
            continue;
        }
        const i64 above = s.span(node).above + s.span(node).added;
        for (i64 below = 2 * node; below < 2 * node + 2; below++)
            if (!answers(s, below, above)) s.asked[many++] = below;
    }
    for (i64 place = many - 1; place >= 0; place--)
        if (s.asked[place] < s.blocks()) sum_up(s, s.asked[place]);
    return s.span(1).over;
}

}  // namespace remat::annealing
