// The block of `pattern`, compiled: what of an order's requests lies above the room that later runs have.
//
// Invariant: nothing lies above it exactly where `held_later` is within the room.
#pragma once

#include "solvers/orders/measure.hpp"

namespace remat::placement {

using orders::Block;
using orders::Blocks;

constexpr i64 CHUNK_UNIT = 256;  // ALIGNMENT of chunks.py
constexpr i64 ILLEGAL = -1;

inline i64 rounded(i64 bytes) { return (bytes + CHUNK_UNIT - 1) / CHUNK_UNIT * CHUNK_UNIT; }

// The most that outputs and what kernels work in take at once.
inline i64 held_beside(const Arrays& arrays, Order order, const Blocks& blocks) {
    i64 outputs = 0, most = 0;
    for (Step step : order.places()) {
        for (Block block : blocks.taken_at(step))
            if (blocks.last[block] == Step(order.size)) outputs += blocks.held[block];
        most = std::max(most, outputs + arrays.workspace[order[step]]);
    }
    return most;
}

// Live blocks by address.
class Pattern {
  public:
    // Put a block in the smallest gap, or above all. Returns its address.
    i64 put(i64 size) {
        std::size_t place = begins_.size();
        i64 address = ends_.empty() ? 0 : ends_.back(), least = -1, reached = 0;
        for (std::size_t k = 0; k < begins_.size(); k++) {
            const i64 over = begins_[k] - reached - size;
            if (over >= 0 && (least < 0 || over < least)) {
                place = k;
                address = reached;
                least = over;
                if (over == 0) break;
            }
            reached = ends_[k];
        }
        begins_.insert(begins_.begin() + place, address);
        ends_.insert(ends_.begin() + place, address + size);
        return address;
    }

    void drop(i64 address) {
        const auto at = std::lower_bound(begins_.begin(), begins_.end(), address) - begins_.begin();
        begins_.erase(begins_.begin() + at);
        ends_.erase(ends_.begin() + at);
    }

  private:
    std::vector<i64> begins_, ends_;
};

// Place the blocks of an order one after the other, and visit the top of each. What stays to the end are outputs, which
// are asked for apart, as what kernels work in is.
template <class Visit>
inline void place_each(Order order, const Blocks& blocks, Visit visit) {
    const i64 count = blocks.held.size;
    Pattern pattern;
    Owned<Block, Step> gone(order.size, NONE);  // after a step, the last taken of those that are let go then
    Owned<Block, Block> other(count, NONE);     // and the one taken before it
    Owned<i64, Block> address(count);
    for (Step step : order.places()) {
        for (Block block : blocks.taken_at(step)) {
            if (blocks.held[block] == 0 || blocks.last[block] == Step(order.size)) continue;
            const i64 size = rounded(blocks.held[block]);
            address[block] = pattern.put(size);
            visit(address[block] + size);
            other[block] = std::exchange(gone[blocks.last[block]], block);
        }
        for (Block block = gone[step]; exists(block); block = other[block]) pattern.drop(address[block]);
    }
}

// The bytes above the room.
inline i64 above(const Arrays& arrays, Order order, i64 room) {
    const Blocks blocks = orders::blocks_of(arrays, order);
    if (!blocks.legal()) return ILLEGAL;
    const i64 inside = room - held_beside(arrays, order, blocks);
    i64 over = 0;
    place_each(order, blocks, [&](i64 top) { over += std::max(i64(0), top - inside); });
    return inside >= 0 || over ? over : -inside;
}

// What later runs hold of an order: the block, and the most that is requested beside it at once.
inline i64 held_later(const Arrays& arrays, Order order) {
    const Blocks blocks = orders::blocks_of(arrays, order);
    if (!blocks.legal()) return ILLEGAL;
    i64 highest = 0;
    place_each(order, blocks, [&](i64 top) { highest = std::max(highest, top); });
    return highest + held_beside(arrays, order, blocks);
}

}  // namespace remat::placement
