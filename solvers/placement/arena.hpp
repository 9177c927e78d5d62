// The arena of `region`: what of an order's requests finds no room in it.
//
// Invariant: nothing is refused exactly where `region.stuck_at` is None for the plan of the order.
#pragma once

#include "solvers/orders/measure.hpp"

namespace remat::placement {

constexpr i64 ARENA_UNIT = 256;  // ALIGNMENT of region.py
constexpr i64 ILLEGAL = -1;

inline i64 rounded(i64 bytes) { return (bytes + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT; }

// What a node works in, in whole units of the arena; row i of `bytes` is of node i.
struct Pieces {
    Ints at, bytes;
    Ints early;  // how many of them come before its results

    template <class Visit>
    void fields(Visit visit) {
        visit(at), visit(bytes), visit(early);
    }
};

// The free chunks of an arena by address. `most` is how many there can be.
class FreeChunks {
  public:
    FreeChunks(i64 room, i64 most) : begins_(most), ends_(most) {
        begins_[0] = 0;
        ends_[0] = room / ARENA_UNIT * ARENA_UNIT;
    }

    // The address of the smallest chunk that holds `size`, or, less than 0, what the largest lacks of it.
    i64 take(i64 size) {
        if (size == 0) return 0;
        i64 best = -1, least = i64(1) << 62, largest = 0;
        for (i64 k = 0; k < count_; k++) {
            const i64 found = ends_[k] - begins_[k];
            largest = std::max(largest, found);
            if (size <= found && found < least) {
                best = k;
                least = found;
            }
        }
        if (best < 0) return largest - size;
        const i64 address = begins_[best];
        begins_[best] += size;
        if (least == size) remove(best);
        return address;
    }

    // Put a chunk back and join it with its neighbours.
    void give(i64 address, i64 size) {
        if (size == 0) return;
        const i64 at = std::lower_bound(begins_.begin(), begins_.begin() + count_, address) - begins_.begin();
        const bool joins_before = at > 0 && ends_[at - 1] == address;
        const bool joins_after = at < count_ && begins_[at] == address + size;
        if (joins_before && joins_after) {
            ends_[at - 1] = ends_[at];
            remove(at);
        } else if (joins_after) {
            begins_[at] = address;
        } else if (joins_before) {
            ends_[at - 1] += size;
        } else {
            for (Ints table : {Ints(begins_), Ints(ends_)})
                std::copy_backward(&table[at], table.begin() + count_, table.begin() + count_ + 1);
            begins_[at] = address;
            ends_[at] = address + size;
            count_ += 1;
        }
    }

  private:
    void remove(i64 k) {
        for (Ints table : {Ints(begins_), Ints(ends_)}) std::copy(&table[k + 1], table.begin() + count_, &table[k]);
        count_ -= 1;
    }

    Owned<i64> begins_, ends_;
    i64 count_ = 1;
};

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

// The bytes that the largest chunk is short of requests, summed. Such requests are met elsewhere, and the run goes on.
inline i64 refused(const Arrays& arrays, const Pieces& pieces, Ints order, i64 room) {
    const orders::Blocks blocks = orders::blocks_of(arrays, order);
    if (!blocks.legal()) return ILLEGAL;
    const i64 count = blocks.held.size;
    FreeChunks free(room, count + pieces.bytes.size + 2);
    Dying dying(order.size, count);
    Owned<i64> address(count, -1), scratch(pieces.bytes.size + 1, 0);
    i64 missing = 0;
    for (i64 step = 0; step < order.size; step++) {
        const i64 node = order[step], begin = pieces.at[node], end = pieces.at[node + 1];
        const i64 middle = begin + pieces.early[node];
        for (i64 k = begin; k < middle; k++) scratch[k - begin] = free.take(pieces.bytes[k]);
        for (i64 block = blocks.first[step]; block < blocks.first[step + 1]; block++) {
            if (blocks.held[block] == 0) continue;
            address[block] = free.take(rounded(blocks.held[block]));
            if (address[block] < 0)
                missing -= address[block];
            else
                dying.add(block, blocks.last[block]);
        }
        for (i64 k = middle; k < end; k++) scratch[k - begin] = free.take(pieces.bytes[k]);
        for (i64 k = begin; k < end; k++) {
            if (scratch[k - begin] < 0)
                missing -= scratch[k - begin];
            else
                free.give(scratch[k - begin], pieces.bytes[k]);
        }
        dying.each(step, [&](i64 block) { free.give(address[block], rounded(blocks.held[block])); });
    }
    return missing;
}

}  // namespace remat::placement
