// The block of `pattern`: what of an order's requests lies above the room that later runs have.
//
// Invariant: nothing lies above it exactly where `pattern.held_later` of the order's plan is within the room.
#pragma once

#include "solvers/orders/measure.hpp"

namespace remat::placement {

constexpr i64 CHUNK_UNIT = 256;  // ALIGNMENT of chunks.py
constexpr i64 ILLEGAL = -1;

inline i64 rounded(i64 bytes) { return (bytes + CHUNK_UNIT - 1) / CHUNK_UNIT * CHUNK_UNIT; }

// Blocks that are let go after the same step, in chains.
class Dying {
  public:
    Dying(i64 steps, i64 blocks) : first_(steps + 1, -1), next_(blocks, -1) {}

    void add(i64 block, i64 step) {
        next_[block] = first_[step];
        first_[step] = block;
    }

    template <class Each>
    void each(i64 step, Each each) const {
        for (i64 block = first_[step]; block >= 0; block = next_[block]) each(block);
    }

  private:
    Owned<i64> first_, next_;
};

// The most that outputs and what kernels work in take at once.
inline i64 held_beside(const Arrays& arrays, Ints order, const orders::Blocks& blocks) {
    i64 outputs = 0, most = 0;
    for (i64 step = 0; step < order.size; step++) {
        for (i64 block = blocks.first[step]; block < blocks.first[step + 1]; block++)
            if (blocks.last[block] == order.size) outputs += blocks.held[block];
        most = std::max(most, outputs + arrays.workspace[order[step]]);
    }
    return most;
}

// Live blocks by address.
class Pattern {
  public:
    explicit Pattern(i64 most) : begins_(most), ends_(most) {}

    // Put a block in the smallest gap, or above all. Returns its address.
    i64 put(i64 size) {
        i64 place = count_, address = count_ ? ends_[count_ - 1] : 0, least = -1, reached = 0;
        for (i64 k = 0; k < count_; k++) {
            const i64 over = begins_[k] - reached - size;
            if (over >= 0 && (least < 0 || over < least)) {
                place = k;
                address = reached;
                least = over;
                if (over == 0) break;
            }
            reached = ends_[k];
        }
        for (Ints table : {Ints(begins_), Ints(ends_)})
            std::copy_backward(&table[place], table.begin() + count_, table.begin() + count_ + 1);
        begins_[place] = address;
        ends_[place] = address + size;
        count_ += 1;
        return address;
    }

    void drop(i64 address) {
        const i64 at = std::lower_bound(begins_.begin(), begins_.begin() + count_, address) - begins_.begin();
        for (Ints table : {Ints(begins_), Ints(ends_)}) std::copy(&table[at + 1], table.begin() + count_, &table[at]);
        count_ -= 1;
    }

  private:
    Owned<i64> begins_, ends_;
    i64 count_ = 0;
};

// Place the blocks of an order one after the other, and visit the top of each. What stays to the end are outputs, which
// are asked for apart, as what kernels work in is.
template <class Visit>
inline void place_each(Ints order, const orders::Blocks& blocks, Visit visit) {
    const i64 count = blocks.held.size;
    Pattern pattern(count + 1);
    Dying dying(order.size, count);
    Owned<i64> address(count, -1);
    for (i64 step = 0; step < order.size; step++) {
        for (i64 block = blocks.first[step]; block < blocks.first[step + 1]; block++) {
            if (blocks.held[block] == 0 || blocks.last[block] == order.size) continue;
            const i64 size = rounded(blocks.held[block]);
            address[block] = pattern.put(size);
            visit(address[block] + size);
            dying.add(block, blocks.last[block]);
        }
        dying.each(step, [&](i64 block) { pattern.drop(address[block]); });
    }
}

// The bytes above the room.
inline i64 above(const Arrays& arrays, Ints order, i64 room) {
    const orders::Blocks blocks = orders::blocks_of(arrays, order);
    if (!blocks.legal()) return ILLEGAL;
    const i64 inside = room - held_beside(arrays, order, blocks);
    i64 over = 0;
    place_each(order, blocks, [&](i64 top) { over += std::max(i64(0), top - inside); });
    return inside >= 0 || over ? over : -inside;
}

// What later runs hold of an order: `pattern.held_later` of its plan.
inline i64 held_later(const Arrays& arrays, Ints order) {
    const orders::Blocks blocks = orders::blocks_of(arrays, order);
    if (!blocks.legal()) return ILLEGAL;
    i64 highest = 0;
    place_each(order, blocks, [&](i64 top) { highest = std::max(highest, top); });
    return highest + held_beside(arrays, order, blocks);
}

}  // namespace remat::placement
