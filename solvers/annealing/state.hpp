// The state of the search: an order of computes in slots, and its memory.
//
// Computes stand in slots with gaps between them. A slot is its number; a compute is a node and which of its computes
// it is, counted from 0 in the order of their slots.
#pragma once

#include <array>

#include "solvers/annealing/tables.hpp"
#include "solvers/native/random.hpp"

namespace remat::annealing {

enum class Slot : i64 {};
enum class Part : i64 {};  // a node of the tree over blocks of slots, counted from the root, which is 1

constexpr i64 EMPTY = i64(1) << 60;
constexpr i64 LONGEST = 256;  // changes in one move, at most: each looks ahead before it logs one
constexpr i64 GAP = 4;        // slots for each compute, at least
constexpr i64 WIDE = 16;      // slots in a block of the tree

// What a part of the tree keeps: see tree.hpp.
struct Span {
    i64 maximum, added, known, above, over, slope, up, down;
};

// One change of a move: a node, its slot if it has one, the slot that it had if it had one, and the slot before that.
struct Change {
    Node node;
    Slot slot, was, before;
};

// What no move changes: nothing; how often each node is computed at most; or the order of first computes.
enum class Kept : i64 { nothing, repeats, order };

// What an order may hold: bytes over the roof count many times.
struct Room {
    i64 budget, roof;
};

// The slots for so many computes, and gaps between them.
inline i64 slots_for(const Tables& t, i64 steps) {
    i64 slots = 1;
    while (slots < GAP * (std::max(steps, t.nodes()) + 8)) slots *= 2;
    return slots;
}

struct State {
    using Slots = std::array<Slot, MOST>;

    const i64 slots;
    i64 budget, roof;
    const Kept kept;
    i64 steps = 0, total = 0;
    i64 repeated = 0, crowded = 0, logged = 0;
    Owned<Slots, Node> runs;   // the slots of a node's computes
    Owned<Slots, Value> ends;  // for each copy, the slot of the last compute that reads it, or of the one that makes it
    Owned<i64, Node> count;    // of computes
    Owned<Node, Slot> node_at;        // the node that is computed there, if any
    Owned<Slot, Slot> before, after;  // the slot of the compute before it, and after it
    Owned<i64, Slot> held;            // the bytes in use, less what was added to whole blocks
    Owned<Span, Part> tree;
    Owned<Part> asked;
    Owned<Node> again;          // the nodes that are computed more than once
    Owned<i64, Node> place;     // where each of them stands there
    Owned<bool, Value> shared;  // whether something may take its place
    Owned<Change> changes;
    Random random;

    // Without computes, and room for so many slots.
    State(const Tables& t, i64 many, Room room, Kept what, i64 seed)
        : slots(many), budget(room.budget), roof(room.roof), kept(what), runs(t.nodes(), Slots{}),
          ends(t.values(), Slots{}), count(t.nodes(), 0), node_at(many, NONE), before(many, NONE), after(many, NONE),
          held(many, 0), tree(2 * many / WIDE, Span{}), asked(2 * many / WIDE), again(t.nodes()), place(t.nodes()),
          shared(t.values(), false), changes(LONGEST), random(seed) {
        for (Read read : t.saved.places())
            if (t.saved[read] > 0) shared[t.reads.items[read]] = true;
    }

    Slot end_slot() const { return Slot(slots - 2); }  // of the node that reads the outputs
    // Whether a node's k-th compute may go, as far as others of the node are concerned.
    bool is_spare(Node node, i64 k) const { return count[node] > 1 && (k > 0 || kept != Kept::order); }

    bool is_taken(Slot slot) const { return exists(node_at[slot]); }

    // The last compute of a node before a slot, or -1.
    i64 run_before(Node node, Slot slot) const {
        const Slots& row = runs[node];
        i64 k = count[node] - 1;
        while (k >= 0 && row[k] >= slot) k--;
        return k;
    }

    // The slot at which a node is computed for the next time, or the one after all slots.
    Slot next_run(Node node, i64 k) const { return k + 1 == count[node] ? Slot(slots) : runs[node][k + 1]; }

    Span& span(Part part) const { return tree[part]; }
    i64 blocks() const { return slots / WIDE; }
    bool is_block(Part part) const { return i64(part) >= blocks(); }
    Part block_of(Slot slot) const { return Part(blocks() + i64(slot) / WIDE); }
    Slot first_of(Part block) const { return Slot((i64(block) - blocks()) * WIDE); }
    Array<i64> held_in(Part block) const { return held.slice(first_of(block), first_of(block) + WIDE); }
};

}  // namespace remat::annealing
