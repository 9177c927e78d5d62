// What an order costs and needs: `lower` and `simulate` at a hundred thousand computes in some milliseconds.
//
// Invariant: equal to lower + simulate on every legal order (held by test); an illegal order is told apart, and one that
// names what is no node is not followed.
#pragma once

#include "solvers/orders/arrays.hpp"

namespace remat::orders {

enum class Flag : i64 {};   // of a step's reads, then its writes
enum class Block : i64 {};  // of memory, in the order in which they are taken

// Whether an order names nothing but nodes.
inline bool names_nodes(const Arrays& arrays, Order order) { return all_below(order, arrays.nodes()); }

// The last uses in an order.
struct Ends {
    Owned<Flag, Step> at;     // where a step's flags lie; one entry more than steps
    Owned<bool, Flag> ends;   // a copy ends here
    Owned<bool, Flag> final;  // a write is an output's last copy
    bool legal;
};

inline Ends ends_of(const Arrays& arrays, Order order) {
    Owned<Flag, Step> at(order.size + 1);
    at[Step(0)] = Flag(0);
    for (Step step : order.places())
        at[step + 1] = at[step] + arrays.reads[order[step]].size + arrays.writes[order[step]].size;
    Owned<bool, Flag> ends(i64(at.last())), final(i64(at.last()));
    Owned<bool, Value> needed(arrays.output), unfinished(arrays.output);
    Owned<i64, Node> ran(arrays.nodes(), 0);
    for (Step step : order.places().backwards()) {
        const Node node = order[step];
        ran[node] += 1;
        Flag flag = at[step];
        for (Value value : arrays.reads[node]) {
            final[flag] = false;
            ends[flag++] = !needed[value];
        }
        for (Value value : arrays.writes[node]) {
            final[flag] = unfinished[value];
            ends[flag++] = !needed[value];
            unfinished[value] = needed[value] = false;
        }
        for (Value value : arrays.reads[node]) needed[value] = true;
    }
    bool legal = std::none_of(needed.begin(), needed.end(), [](bool one) { return one; });
    for (Node node : ran.places())
        if (ran[node] == 0 || (ran[node] > 1 && arrays.once[node])) legal = false;
    return {std::move(at), std::move(ends), std::move(final), legal};
}

// The blocks of memory that an order takes, one after the other. All is empty if the order is illegal.
struct Blocks {
    Owned<Block, Step> first;  // of a step; one entry more than steps
    Owned<i64, Block> held;    // bytes
    Owned<Step, Block> last;   // the step after which it is let go, or the one after all steps

    bool legal() const { return first.size > 0; }
    Range<Block> taken_at(Step step) const { return {first[step], first[step + 1]}; }
};

// Blocks as they are taken and let go, step by step.
class BlockWalk {
  public:
    BlockWalk(const Arrays& arrays, Order order)
        : arrays_(arrays), order_(order), ends_(ends_of(arrays, order)), holder_of_(arrays.values(), NONE) {}

    Blocks run() && {
        if (!ends_.legal) return {};
        const i64 most = ends_.ends.size + 1;
        found_.first = Owned<Block, Step>(order_.size + 1);
        found_.held = Owned<i64, Block>(most);
        found_.last = Owned<Step, Block>(most, Step(order_.size));
        holders_ = Owned<i64, Block>(most, 0);
        fresh_ = Owned<Block, Write>(arrays_.writes.items.size);
        lent_ = Owned<bool, Write>(arrays_.writes.items.size);
        found_.first[Step(0)] = next_;
        for (Step step : order_.places()) {
            take(step);
            found_.first[step + 1] = next_;
            let_go(step);
        }
        found_.held.size = found_.last.size = i64(next_);
        return std::move(found_);
    }

  private:
    // A block for each write of a step.
    void take(Step step) {
        const Node node = order_[step];
        Flag flag = ends_.at[step] + arrays_.reads[node].size;
        for (Write place : arrays_.writes.places(node)) {
            const Value value = arrays_.writes.items[place];
            const bool final = ends_.final[flag], ends = ends_.ends[flag++];
            fresh_[place] = NONE;
            lent_[place] = false;
            if (ends && arrays_.optional[value]) continue;
            Block block = final ? NONE : shared(step, place);
            lent_[place] = exists(block);
            if (!exists(block)) {
                block = next_++;
                found_.held[block] = arrays_.view_of[place] == NO_VIEW || final ? arrays_.size[value] : 0;
            }
            holders_[block] += 1;
            fresh_[place] = block;
        }
    }

    // The block that a write shares with what it is a view of or takes the place of, if there is one.
    Block shared(Step step, Write place) const {
        const Value base = arrays_.view_of[place];
        if (base != NO_VIEW) return exists(base) ? holder_of_[base] : NONE;
        for (Value read : arrays_.over[place]) {
            const Block block = holder_of_[read];
            if (!exists(block) || holders_[block] != 1) continue;
            if (found_.held[block] == arrays_.size[arrays_.writes.items[place]] && dies(step, read)) return block;
        }
        return NONE;
    }

    // Whether a step is the last to read a value.
    bool dies(Step step, Value value) const {
        Flag flag = ends_.at[step];
        bool found = false;
        for (Value read : arrays_.reads[order_[step]]) {
            const bool ends = ends_.ends[flag++];
            if (read == value) found = ends;
        }
        return found;
    }

    void let_go(Step step) {
        const Node node = order_[step];
        Flag flag = ends_.at[step];
        for (Value value : arrays_.reads[node])
            if (ends_.ends[flag++]) release(holder_of_[value], step);
        for (Write place : arrays_.writes.places(node)) {
            const bool ends = ends_.ends[flag++];
            if (!exists(fresh_[place])) continue;
            holder_of_[arrays_.writes.items[place]] = fresh_[place];
            if (ends && (lent_[place] || !arrays_.unread_stay)) release(fresh_[place], step);
        }
    }

    void release(Block block, Step step) {
        holders_[block] -= 1;
        if (holders_[block] == 0) found_.last[block] = step;
    }

    const Arrays& arrays_;
    const Order order_;
    const Ends ends_;
    Owned<Block, Value> holder_of_;  // the block of its live copy
    Owned<i64, Block> holders_;      // how many values live in it
    Owned<Block, Write> fresh_;      // while its node runs: its block, if it has one
    Owned<bool, Write> lent_;        // and whether that was in memory before
    Blocks found_;
    Block next_{0};
};

inline Blocks blocks_of(const Arrays& arrays, Order order) {
    return names_nodes(arrays, order) ? BlockWalk(arrays, order).run() : Blocks();
}

// The same for Python: the first block of each step, and of each block its bytes and the last step that needs it.
inline std::tuple<Owned<Block, Step>, Owned<i64, Block>, Owned<Step, Block>> blocks_taken(const Arrays& arrays,
                                                                                           Order order) {
    Blocks blocks = blocks_of(arrays, order);
    return {std::move(blocks.first), std::move(blocks.held), std::move(blocks.last)};
}

// Bytes in use during each compute; empty if the order is illegal.
inline Owned<i64, Step> memory_of(const Arrays& arrays, Order order) {
    const Blocks blocks = blocks_of(arrays, order);
    if (!blocks.legal()) return {};
    Owned<i64, Step> memory(order.size), freed(order.size + 1, 0);
    i64 used = arrays.resident;
    for (Step step : order.places()) {
        for (Block block : blocks.taken_at(step)) {
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
inline Owned<Node> trim(const Arrays& arrays, Order order) {
    if (!names_nodes(arrays, order)) return {};
    Owned<Step, Node> first(arrays.nodes(), NONE);
    for (Step step : order.places().backwards()) first[order[step]] = step;
    Owned<bool, Value> needed(arrays.output);
    std::vector<Node> kept;
    for (Step step : order.places().backwards()) {
        const Node node = order[step];
        bool useful = first[node] == step;
        for (Value value : arrays.writes[node]) useful = useful || needed[value];
        if (!useful) continue;
        kept.push_back(node);
        for (Value value : arrays.writes[node]) needed[value] = false;
        for (Value value : arrays.reads[node]) needed[value] = true;
    }
    std::reverse(kept.begin(), kept.end());
    return Owned(kept);
}

}  // namespace remat::orders
