// The problem that annealing changes orders of, with what a write saves where it takes the place of a read.
#pragma once

#include "solvers/orders/arrays.hpp"

namespace remat::annealing {

constexpr i64 MOST = 16;  // computes of one node, at most

// Invariant: what is saved is counted safely: of the reads that a write may take the place of, only the first, one write
// for each, and never for an output or an optional write.
struct Tables : Arrays {
    Owned<i64, Read> saved;  // the bytes of the write that takes a read's place if it ends there

    explicit Tables(const Arrays& arrays) : Arrays(arrays), saved(reads.items.size, 0) {
        for (Node node : cost.places())
            for (Write place : writes.places(node)) {
                const Value write = writes.items[place];
                if (output[write] || optional[write] || over[place].size == 0) continue;
                const Read read = place_of(node, over[place][0]);
                if (exists(read) && saved[read] == 0) saved[read] = size[write];
            }
    }

    // What a node writes in the place of this value, if it is the last to read it.
    i64 saved_by(Node node, Value value) const {
        const Read place = place_of(node, value);
        return exists(place) ? saved[place] : 0;
    }

  private:
    // Where a node reads a value, if it does.
    Read place_of(Node node, Value value) const {
        for (Read place : reads.places(node))
            if (reads.items[place] == value) return place;
        return NONE;
    }
};

}  // namespace remat::annealing
