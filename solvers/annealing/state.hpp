// The state of the search: an order of computes in slots, and its memory.
//
// Computes stand in slots with gaps between them. A slot is its number; a compute is a node and which of its computes
// it is, counted from 0 in the order of their slots.
#pragma once

#include "solvers/annealing/tables.hpp"
#include "solvers/native/random.hpp"

namespace remat::annealing {

constexpr i64 EMPTY = i64(1) << 60;
constexpr i64 LONGEST = 256;  // changes in one move, at most: each looks ahead before it logs one
constexpr i64 GAP = 4;        // slots for each compute, at least
constexpr i64 WIDE = 16;      // slots in a block of the tree

// What a node of the tree over blocks of slots keeps: see tree.hpp.
struct Span {
    i64 maximum, added, known, above, over, slope, up, down;
};

// One change of a move: a node, its slot or -1, the slot that it had or -1, and the slot before that.
struct Change {
    i64 node, slot, was, before;
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
    const i64 slots;
    i64 budget, roof;
    const Kept kept;
    i64 steps = 0, total = 0;
    i64 repeated = 0, crowded = 0, logged = 0;
    Owned<i64> runs, count, ends;
    Owned<i64> node_at;        // slot -> the node that is computed there, or -1
    Owned<i64> before, after;  // slot -> the slot of the compute before it, and after it
    Owned<i64> held;           // slot -> the bytes in use, less what was added to whole blocks
    Owned<Span> tree;
    Owned<i64> asked;
    Owned<i64> again, place;  // the nodes that are computed more than once, and where each of them stands there
    Owned<bool> shared;       // value -> whether something may take its place
    Owned<i64> stack;
    Owned<Change> changes;
    Random random;

    // Without computes, and room for so many slots.
    State(const Tables& t, i64 many, Room room, Kept what, i64 seed)
        : slots(many), budget(room.budget), roof(room.roof), kept(what), runs(t.nodes() * MOST, 0), count(t.nodes(), 0),
          ends(t.values() * MOST, 0), node_at(many, 0), before(many, 0), after(many, 0), held(many, 0),
          tree(2 * many / WIDE, Span{}), asked(2 * many / WIDE, 0), again(t.nodes(), 0), place(t.nodes(), 0),
          shared(t.values(), false), stack(LONGEST, 0), changes(LONGEST, Change{}), random(seed) {
        for (i64 read = 0; read < t.reads_at[t.nodes()]; read++)
            if (t.saved[read] > 0) shared[t.reads[read]] = true;
    }

    // The slot of a node's k-th compute.
    i64& run(i64 node, i64 k) const { return runs[node * MOST + k]; }
    Ints runs_of(i64 node) const { return runs.slice(node * MOST, (node + 1) * MOST); }

    // The slot of the last compute that reads a value's k-th copy, or of the compute that makes it if none does.
    i64& end(i64 value, i64 k) const { return ends[value * MOST + k]; }
    Ints ends_of(i64 value) const { return ends.slice(value * MOST, (value + 1) * MOST); }

    i64 end_slot() const { return slots - 2; }  // of the node that reads the outputs
    // Whether a node's k-th compute may go, as far as others of the node are concerned.
    bool is_spare(i64 node, i64 k) const { return count[node] > 1 && (k > 0 || kept != Kept::order); }

    bool is_taken(i64 slot) const { return node_at[slot] >= 0; }

    // The last compute of a node before a slot, or -1.
    i64 run_before(i64 node, i64 slot) const {
        const Ints row = runs_of(node);
        i64 k = count[node] - 1;
        while (k >= 0 && row[k] >= slot) k--;
        return k;
    }

    // The slot at which a node is computed for the next time, or the number of slots.
    i64 next_run(i64 node, i64 k) const { return k + 1 == count[node] ? slots : run(node, k + 1); }

    Span& span(i64 node) const { return tree[node]; }
    i64 blocks() const { return slots / WIDE; }
    Ints held_in(i64 block) const { return held.slice((block - blocks()) * WIDE, (block - blocks() + 1) * WIDE); }
};

}  // namespace remat::annealing
