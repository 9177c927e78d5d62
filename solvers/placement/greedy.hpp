// Lifetimes placed one by one in a given order, each at the lowest place that is free for as long as it lives.
//
// Invariant: no two lifetimes that meet in time meet in address. Times, sizes and offsets are whole units.
#pragma once

#include "solvers/native/array.hpp"

namespace remat::placement {

// Fill `offset` and return the height. It stops early, with a height of `cap` or more, where that is reached.
inline i64 place_in_order(Ints order, Ints start, Ints end, Ints size, i64 cap, Ints offset) {
    Owned<i64> placed(order.size);  // by offset
    i64 height = 0;
    for (i64 done = 0; done < order.size; done++) {
        const i64 item = order[done];
        i64 floor = 0;
        for (i64 other : placed.slice(0, done)) {
            if (start[other] >= end[item] || end[other] <= start[item]) continue;
            if (offset[other] >= floor + size[item]) break;
            floor = std::max(floor, offset[other] + size[other]);
        }
        offset[item] = floor;
        height = std::max(height, floor + size[item]);
        if (height >= cap) return height;
        i64* const end_placed = placed.begin() + done;
        i64* const at = std::upper_bound(placed.begin(), end_placed, floor,
                                         [&](i64 offset_, i64 other) { return offset_ < offset[other]; });
        std::copy_backward(at, end_placed, end_placed + 1);
        *at = item;
    }
    return height;
}

}  // namespace remat::placement
