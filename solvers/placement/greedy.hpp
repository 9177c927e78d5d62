// Lifetimes placed one by one in a given order, each at the lowest place that is free for as long as it lives.
//
// Invariant: no two lifetimes that meet in time meet in address. Times, sizes and offsets are whole units.
#pragma once

#include "solvers/placement/lives.hpp"

namespace remat::placement {

// Fill `offset`.
inline void place_in_order(Array<const Item> order, const Lives& of, Array<i64, Item> offset) {
    require(all_below(order, of.count()) && offset.size == of.count(), "an order or offsets of other lifetimes");
    Owned<Item> placed(order.size);  // by offset
    for (i64 done : order.places()) {
        const Item item = order[done];
        i64 floor = 0;
        for (Item other : placed.first(done)) {
            if (of.start[other] >= of.end[item] || of.end[other] <= of.start[item]) continue;
            if (offset[other] >= floor + of.size[item]) break;
            floor = std::max(floor, offset[other] + of.size[other]);
        }
        offset[item] = floor;
        Item* const end_placed = placed.begin() + done;
        Item* const at = std::upper_bound(placed.begin(), end_placed, floor,
                                         [&](i64 offset_, Item other) { return offset_ < offset[other]; });
        std::copy_backward(at, end_placed, end_placed + 1);
        *at = item;
    }
}

}  // namespace remat::placement
