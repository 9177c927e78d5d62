// The memory in use at every slot of an order, as a tree of maxima over blocks of slots: bytes are added to a range, and
// the bytes over budget are asked for.
//
// What a slot counts is a function of its memory with straight pieces: nothing up to the budget, then each byte once,
// and above the roof many times. So each part of the tree keeps what all below it counted together when they were last
// asked (`over`), how much that changes with each byte added to all of them (`slope`), and how many bytes until one of
// them comes to another piece (`up`, `down`). When the tree is asked again, only those parts are looked at in which
// something was added to some slots and not to others, or a slot crosses.
//
// Invariant: memory at a slot is what is held there and what was `added` to all parts above it; a slot without a compute
// is so far below zero that it never counts. What a part keeps is true of what was added above it then (`above`), and
// only while it is `known`; a change makes everything above it unknown.
#pragma once

#include "solvers/annealing/state.hpp"

namespace remat::annealing {

constexpr i64 STEEP = 100;      // what a byte above the roof counts besides
constexpr i64 FAR = 2 * EMPTY;    // there is no other piece that way

constexpr Part ROOT{1};

inline Part above(Part part) { return Part(i64(part) >> 1); }
inline Part below(Part part, i64 side) { return Part(2 * i64(part) + side); }
inline Part beside(Part part) { return Part(i64(part) ^ 1); }
inline i64 side_of(Part part) { return i64(part) & 1; }

inline void gather(State& s, Part part) {
    Span& span = s.span(part);
    span.maximum = std::max(s.span(below(part, 0)).maximum, s.span(below(part, 1)).maximum) + span.added;
    span.known = 0;
}

// What stands above a part whose maximum and ignorance are as they were stays as it is: what is known there is known by
// maxima alone.
inline void gather_up(State& s, Part part) {
    for (; part >= ROOT; part = above(part)) {
        const i64 known = s.span(part).known, most = s.span(part).maximum;
        gather(s, part);
        if (!known && s.span(part).maximum == most) return;
    }
}

inline void look_at_block(State& s, Part block) {
    i64 most = -FAR;
    for (i64 held : s.held_in(block)) most = std::max(most, held);
    Span& span = s.span(block);
    span.maximum = most + span.added;
    span.known = 0;
}

// Add to some slots of one block, both ends included.
inline void add_within(State& s, Part block, Slot first, Slot last, i64 amount) {
    i64 most = s.held[first];
    for (Slot slot = first; slot <= last; ++slot) {
        most = std::max(most, s.held[slot]);
        s.held[slot] += amount;
    }
    Span& span = s.span(block);
    span.known = 0;
    if (amount > 0)
        span.maximum = std::max(span.maximum, most + amount + span.added);
    else if (most + span.added == span.maximum)
        look_at_block(s, block);
}

// Add to all slots below a part: what it keeps was so with more above it.
inline void add_below(State& s, Part part, i64 amount) {
    Span& span = s.span(part);
    span.maximum += amount;
    span.added += amount;
    span.above -= amount;
}

// Add to the slots `first` to `last`, both included.
inline void add(State& s, Slot first, Slot last, i64 amount) {
    Part left = s.block_of(first), right = s.block_of(last);
    if (left == right) {
        add_within(s, left, first, last, amount);
        gather_up(s, above(left));
        return;
    }
    add_within(s, left, first, s.first_of(left) + WIDE - 1, amount);
    add_within(s, right, s.first_of(right), last, amount);
    while (left != beside(right)) {
        if (side_of(left) == 0) add_below(s, beside(left), amount);
        if (side_of(right) == 1) add_below(s, beside(right), amount);
        left = above(left);
        right = above(right);
        gather(s, left);
        gather(s, right);
    }
    gather_up(s, above(left));
}

// Add to one slot.
inline void bump(State& s, Slot slot, i64 amount) { add(s, slot, slot, amount); }

// Build the whole tree from its slots.
inline void grow(State& s) {
    for (Part part : Range<Part>(ROOT, Part(2 * s.blocks())).backwards()) {
        s.span(part).added = 0;
        if (s.is_block(part))
            look_at_block(s, part);
        else
            gather(s, part);
    }
}

// Whether a part can say what it counts without asking those below it, so much being added above it.
inline bool answers(State& s, Part part, i64 added) {
    Span& span = s.span(part);
    const i64 more = added - span.above;
    const bool known = span.known != 0;
    span.above = added;
    span.known = 1;
    const i64 room = s.budget - span.maximum - added;
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

inline void count_block(State& s, Part block) {
    Span& span = s.span(block);
    const i64 added = span.above + span.added;
    i64 over = 0, slope = 0, up = FAR, down = FAR;
    for (i64 held : s.held_in(block)) {
        const i64 memory = held + added;
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

inline void sum_up(State& s, Part part) {
    Span& span = s.span(part);
    const Span &one = s.span(below(part, 0)), &other = s.span(below(part, 1));
    span.over = one.over + other.over;
    span.slope = one.slope + other.slope;
    span.up = std::min(one.up, other.up);
    span.down = std::min(one.down, other.down);
}

// The bytes over budget, summed over all computes, those above the roof many times.
inline i64 excess(State& s) {
    i64 done = 0, many = 0;
    if (!answers(s, ROOT, 0)) s.asked[many++] = ROOT;
    while (done < many) {  // parents stand before their children
        const Part part = s.asked[done++];
        if (s.is_block(part)) {
            count_block(s, part);
            continue;
        }
        const i64 added = s.span(part).above + s.span(part).added;
        for (i64 side = 0; side < 2; side++)
            if (!answers(s, below(part, side), added)) s.asked[many++] = below(part, side);
    }
    while (many--)
        if (!s.is_block(s.asked[many])) sum_up(s, s.asked[many]);
    return s.span(ROOT).over;
}

}  // namespace remat::annealing
