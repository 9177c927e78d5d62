// What an order costs and needs: `lower` and `simulate` at a hundred thousand computes in some milliseconds.
//
// Invariant: equal to lower + simulate on every legal order (held by test); an illegal order is told apart, and one that
// names what is no node is not followed.
#pragma once

#include "solvers/orders/arrays.hpp"

namespace remat::orders {

// Whether an order names nothing but nodes.
inline bool names_nodes(const Arrays& arrays, Ints order) {
    return std::all_of(order.begin(), order.end(), [&](i64 node) { return node >= 0 && node < arrays.nodes(); });
}

// The last uses in an order. Flags are for each step's reads, then its writes; `at` says where a step's flags lie.
struct Ends {
    Owned<i64> at;
    Owned<bool> ends;   // a copy ends here
    Owned<bool> final;  // a write is an output's last copy
    bool legal;
};

inline Ends ends_of(const Arrays& arrays, Ints order) {
    Owned<i64> at(order.size + 1, 0);
    for (i64 step = 0; step < order.size; step++) {
        const i64 node = order[step];
        at[step + 1] = at[step] + arrays.reads_of(node).size + arrays.writes_of(node).size;
    }
    Owned<bool> ends(at.last()), final(at.last()), needed(arrays.output), unfinished(arrays.output);
    Owned<i64> ran(arrays.nodes(), 0);
    for (i64 step = order.size - 1; step >= 0; step--) {
        const i64 node = order[step];
        ran[node] += 1;
        i64 place = at[step];
        for (i64 value : arrays.reads_of(node)) {
            final[place] = false;
            ends[place++] = !needed[value];
        }
        for (i64 value : arrays.writes_of(node)) {
            final[place] = unfinished[value];
            ends[place++] = !needed[value];
            unfinished[value] = needed[value] = false;
        }
        for (i64 value : arrays.reads_of(node)) needed[value] = true;
    }
    bool legal = std::none_of(needed.begin(), needed.end(), [](bool one) { return one; });
    for (i64 node = 0; node < arrays.nodes(); node++)
        if (ran[node] == 0 || (ran[node] > 1 && arrays.once[node])) legal = false;
    return {std::move(at), std::move(ends), std::move(final), legal};
}

// The blocks of memory that an order takes, one after the other. All is empty if the order is illegal.
struct Blocks {
    Owned<i64> first;  // for each step, its first block; one entry more than steps
    Owned<i64> held;   // the bytes of each block
    Owned<i64> last;   // the step after which each is let go, or the number of steps

    bool legal() const { return first.size > 0; }
};

// Blocks as they are taken and let go, step by step.
class BlockWalk {
  public:
    BlockWalk(const Arrays& arrays, Ints order)
        : arrays_(arrays), order_(order), ends_(ends_of(arrays, order)), holder_of_(arrays.values(), -1) {}

    Blocks run() && {
        if (!ends_.legal) return {};
        const i64 most = ends_.at.last() + 1;
        found_ = {Owned<i64>(order_.size + 1, 0), Owned<i64>(most, 0), Owned<i64>(most, order_.size)};
        holders_ = Owned<i64>(most, 0);
        fresh_ = Owned<i64>(arrays_.writes.size);
        lent_ = Owned<bool>(arrays_.writes.size);
        for (i64 step = 0; step < order_.size; step++) {
            take(step);
            found_.first[step + 1] = count_;
            let_go(step);
        }
        return {std::move(found_.first), std::move(found_.held).shortened(count_),
                std::move(found_.last).shortened(count_)};
    }

  private:
    // A block for each write of a step.
    void take(i64 step) {
        const i64 node = order_[step], wrote = ends_.at[step] + arrays_.reads_of(node).size;
        const i64 begin = arrays_.writes_at[node];
        for (i64 place = begin; place < arrays_.writes_at[node + 1]; place++) {
            const i64 value = arrays_.writes[place], flag = wrote + place - begin;
            fresh_[place] = -1;
            lent_[place] = false;
            if (ends_.ends[flag] && arrays_.optional[value]) continue;
            i64 bytes = arrays_.size[value];
            if (arrays_.view_of[place] != NO_VIEW && !ends_.final[flag]) bytes = 0;
            i64 block = ends_.final[flag] ? -1 : shared(step, place);
            lent_[place] = block >= 0;
            if (block < 0) {
                block = count_++;
                found_.held[block] = bytes;
            }
            holders_[block] += 1;
            fresh_[place] = block;
        }
    }

    // The block that a write shares with what it is a view of or takes the place of, or -1.
    i64 shared(i64 step, i64 place) const {
        const i64 base = arrays_.view_of[place];
        if (base != NO_VIEW) return base >= 0 ? holder_of_[base] : -1;
        for (i64 over = arrays_.over_at[place]; over < arrays_.over_at[place + 1]; over++) {
            const i64 read = arrays_.over[over], block = holder_of_[read];
            if (block < 0 || holders_[block] != 1 || found_.held[block] != arrays_.size[arrays_.writes[place]]) continue;
            if (dies(step, read)) return block;
        }
        return -1;
    }

    // Whether a step is the last to read a value.
    bool dies(i64 step, i64 value) const {
        const Ints reads = arrays_.reads_of(order_[step]);
        bool found = false;
        for (i64 r = 0; r < reads.size; r++)
            if (reads[r] == value) found = ends_.ends[ends_.at[step] + r];
        return found;
    }

    void let_go(i64 step) {
        const i64 node = order_[step];
        i64 flag = ends_.at[step];
        for (i64 value : arrays_.reads_of(node))
            if (ends_.ends[flag++]) release(holder_of_[value], step);
        for (i64 place = arrays_.writes_at[node]; place < arrays_.writes_at[node + 1]; place++, flag++) {
            if (fresh_[place] < 0) continue;
            holder_of_[arrays_.writes[place]] = fresh_[place];
            if (ends_.ends[flag] && (lent_[place] || !arrays_.unread_stay)) release(fresh_[place], step);
        }
    }

    void release(i64 block, i64 step) {
        holders_[block] -= 1;
        if (holders_[block] == 0) found_.last[block] = step;
    }

    const Arrays& arrays_;
    const Ints order_;
    const Ends ends_;
    Owned<i64> holder_of_;  // value -> the block of its live copy
    Owned<i64> holders_;    // block -> how many values live in it
    Owned<i64> fresh_;      // for each place in `writes`, while its node runs: its block, or -1
    Owned<bool> lent_;      // and whether that was in memory before
    Blocks found_;
    i64 count_ = 0;
};

inline Blocks blocks_of(const Arrays& arrays, Ints order) {
    return names_nodes(arrays, order) ? BlockWalk(arrays, order).run() : Blocks();
}

// Bytes in use during each compute; empty if the order is illegal.
inline Owned<i64> memory_of(const Arrays& arrays, Ints order) {
    const Blocks blocks = blocks_of(arrays, order);
    if (!blocks.legal()) return Owned<i64>(0);
    Owned<i64> memory(order.size), freed(order.size + 1, 0);
    i64 used = arrays.resident;
    for (i64 step = 0; step < order.size; step++) {
        for (i64 block = blocks.first[step]; block < blocks.first[step + 1]; block++) {
            used += blocks.held[block];
            freed[blocks.last[block]] += blocks.held[block];
        }
        memory[step] = used + arrays.workspace[order[step]];
        used -= freed[step];
    }
    return memory;
}

// The order without computes that are not a node's first and whose results nobody needs; empty if it names what is no
// node.
inline Owned<i64> trim(const Arrays& arrays, Ints order) {
    if (!names_nodes(arrays, order)) return Owned<i64>(0);
    Owned<i64> first(arrays.nodes(), -1);
    for (i64 step = order.size - 1; step >= 0; step--) first[order[step]] = step;
    Owned<bool> needed(arrays.output), keep(order.size, false);
    i64 kept = 0;
    for (i64 step = order.size - 1; step >= 0; step--) {
        const i64 node = order[step];
        bool useful = first[node] == step;
        for (i64 value : arrays.writes_of(node)) useful = useful || needed[value];
        if (!useful) continue;
        keep[step] = true;
        kept += 1;
        for (i64 value : arrays.writes_of(node)) needed[value] = false;
        for (i64 value : arrays.reads_of(node)) needed[value] = true;
    }
    Owned<i64> found(kept);
    i64* next = found.begin();
    for (i64 step = 0; step < order.size; step++)
        if (keep[step]) *next++ = order[step];
    return found;
}

}  // namespace remat::orders
