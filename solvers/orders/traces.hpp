// The cheapest way back from what is read to what it was made from: see traces.py.
#pragma once

#include "solvers/orders/arrays.hpp"

namespace remat::orders {

inline void follow_traces(const Arrays& arrays, Array<const bool, Value> free, Array<const double, Node> made,
                          Array<double, Value> least, Array<Value, Value> after, Array<Value, Node> read,
                          Array<double, Node> cost) {
    require(all_as_long(arrays.values(), free, least, after) && all_as_long(arrays.nodes(), made, read, cost),
            "arrays that are not as long as the problem's");
    for (Node node : made.places()) {
        double best = made[node];
        Value follows = NONE;
        for (Value value : arrays.reads[node]) {
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
        for (Value value : arrays.writes[node]) {
            least[value] += best;
            after[value] = follows;
        }
    }
}

}  // namespace remat::orders
