// The problem that annealing changes orders of, with what a write saves where it takes the place of a read.
#pragma once

#include "solvers/orders/arrays.hpp"

namespace remat::annealing {

constexpr i64 MOST = 16;  // computes of one node, at most

// Invariant: what is saved is counted safely: of the reads that a write may take the place of, only the first, one write
// for each, and never for an output or an optional write.
struct Tables : Arrays {
    Owned<i64> saved;  // for each place in `reads`: the bytes of the write that takes its place if it ends there

    explicit Tables(const Arrays& arrays) : Arrays(arrays), saved(reads.size, 0) {
        for (i64 node = 0; node < nodes(); node++)
            for (i64 place = writes_at[node]; place < writes_at[node + 1]; place++) {
                const i64 write = writes[place];
                if (output[write] || optional[write] || over_at[place] == over_at[place + 1]) continue;
                const i64 read = place_of(node, over[over_at[place]]);
                if (read >= 0 && saved[read] == 0) saved[read] = size[write];
            }
    }

    // What a node writes in the place of this value, if it is the last to read it.
    i64 saved_by(i64 node, i64 value) const {
        const i64 place = place_of(node, value);
        return place < 0 ? 0 : saved[place];
    }

  private:
    // Where a node reads a value, or -1.
    i64 place_of(i64 node, i64 value) const {
        for (i64 place = reads_at[node]; place < reads_at[node + 1]; place++)
            if (reads[place] == value) return place;
        return -1;
    }
};

}  // namespace remat::annealing
