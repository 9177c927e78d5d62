// The cheapest way back from what is read to what it was made from: see traces.py.
#pragma once

#include "solvers/orders/arrays.hpp"

namespace remat::orders {

inline void follow_traces(Ints reads_at, Ints reads, Ints writes_at, Ints writes, Flags free, Floats made, Floats least,
                          Ints after, Ints read, Floats cost) {
    for (i64 node = 0; node < made.size; node++) {
        double best = made[node];
        i64 follows = -1;
        for (i64 value : reads.slice(reads_at[node], reads_at[node + 1])) {
            if (free[value]) continue;
            if (least[value] < best) {
                best = least[value];
                follows = value;
            }
            if (least[value] < cost[node]) {
                cost[node] = least[value];
                read[node] = value;
            }
        }
        for (i64 value : writes.slice(writes_at[node], writes_at[node + 1])) {
            least[value] += best;
            after[value] = follows;
        }
    }
}

}  // namespace remat::orders
