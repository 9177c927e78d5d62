// The state of the search, `layout.py`'s flat array with names: an order of computes in slots, and its memory.
//
// Computes stand in slots with gaps between them. A slot is its number; a compute is a node and which of its computes
// it is, counted from 0 in the order of their slots.
#pragma once

#include "solvers/methods/exact/tables.hpp"
#include "solvers/native/random.hpp"

namespace remat::annealing {

constexpr i64 EMPTY = i64(1) << 60;
constexpr i64 LONGEST = 256;  // changes in one move, at most
constexpr i64 WIDE = 32;     // slots in a block of the tree

// What a node of the tree over blocks of slots keeps: see tree.hpp.
struct Span {
    i64 maximum, added, known, above, over, slope, up, down;
};

// One change of a move: a node, its slot or -1, the slot that it had or -1, and the slot before that.
struct Change {
    i64 node, slot, was, before;
};

struct State {
    const i64 slots;
    i64 &steps, &total;
    const i64 budget, roof;
    i64 &repeated, &crowded, &logged;
    i64 *runs, *count, *ends;
    i64 *node_at;          // slot -> the node that is computed there, or -1
    i64 *before, *after;   // slot -> the slot of the compute before it, and after it
    i64* held;             // slot -> the bytes in use, less what was added to whole blocks
    Span* tree;
    i64* asked;
    i64 *again, *place;    // the nodes that are computed more than once, and where each of them stands there
    i64* shared;           // value -> whether something may take its place
    i64* stack;
    Change* changes;
    Random random;

    explicit State(Ints flat, i64 seed = 0)
        : slots(flat[0]), steps(flat[1]), total(flat[2]), budget(flat[3]), roof(flat[4]), repeated(flat[5]),
          crowded(flat[6]), logged(flat[7]), random(seed) {
        const i64* start = flat.data + 8;
        for (i64** table : {&runs, &count, &ends, &node_at, &before, &after, &held}) *table = flat.data + *start++;
        tree = reinterpret_cast<Span*>(flat.data + *start++);
        for (i64** table : {&asked, &again, &place, &shared, &stack}) *table = flat.data + *start++;
        changes = reinterpret_cast<Change*>(flat.data + *start);
    }

    // The slot of a node's k-th compute.
    i64& run(i64 node, i64 k) const { return runs[node * MOST + k]; }
    i64* runs_of(i64 node) const { return runs + node * MOST; }

    // The slot of the last compute that reads a value's k-th copy, or of the compute that makes it if none does.
    i64& end(i64 value, i64 k) const { return ends[value * MOST + k]; }
    i64* ends_of(i64 value) const { return ends + value * MOST; }

    i64 end_slot() const { return slots - 2; }  // of the node that reads the outputs
    bool is_taken(i64 slot) const { return node_at[slot] >= 0; }

    // The last compute of a node before a slot, or -1.
    i64 run_before(i64 node, i64 slot) const {
        const i64* row = runs_of(node);
        i64 k = count[node] - 1;
        while (k >= 0 && row[k] >= slot) k--;
        return k;
    }

    // The slot at which a node is computed for the next time, or the number of slots.
    i64 next_run(i64 node, i64 k) const { return k + 1 == count[node] ? slots : run(node, k + 1); }

    Span& span(i64 node) const { return tree[node]; }
    i64 blocks() const { return slots / WIDE; }
    i64* held_in(i64 block) const { return held + (block - blocks()) * WIDE; }
};

}  // namespace remat::annealing
