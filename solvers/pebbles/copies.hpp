// Sets of copies that are in memory together, and what a compute makes of them, by the tables of `copies.py`.
//
// Invariant: whatever copies an order holds, `size` of them and `need` of a compute between them is no more than it takes.
#pragma once

#include <vector>

#include "solvers/orders/arrays.hpp"

namespace remat::pebbles {

using Bits = std::vector<i64>;  // in rising order

// The struct of `copies.py`, field for field. A bit is a copy of a value, or the last copy of an output.
struct Tables {
    Arrays problem;
    Ints value, writer, bytes;      // of each bit; no bytes where a copy may share memory
    Flags last, shared;             // of each bit
    Ints ordinary_bit, last_bit;    // of each value, or -1
    Ints reads_at, reads, writes_at, writes;  // of each node, as bits
    Ints plain;                     // of each node: bytes that the writes take, whatever is held; -1 if that depends
    Ints weight;                    // of each node: what it takes at most to hold what it reads for longer
    Ints base, root, floor;         // of each value, as `Blocks` has them
    Grid<i64> needed;               // for each node, those that it needs, itself included

    template <class Visit>
    void fields(Visit visit) {
        visit(problem), visit(value), visit(writer), visit(bytes), visit(last), visit(shared), visit(ordinary_bit);
        visit(last_bit), visit(reads_at), visit(reads), visit(writes_at), visit(writes), visit(plain), visit(weight);
        visit(base), visit(root), visit(floor), visit(needed);
    }

    i64 count() const { return value.size; }
    Ints reads_of(i64 node) const { return reads.slice(reads_at[node], reads_at[node + 1]); }
    Ints writes_of(i64 node) const { return writes.slice(writes_at[node], writes_at[node + 1]); }
    bool needs(i64 node, i64 other) const { return needed[node][other / 64] >> (other % 64) & 1; }
};

// One set at a time, as flags.
class Held {
  public:
    explicit Held(const Tables& tables) : t(tables), flags_(t.count(), false), most_(t.floor.size, 0) {}

    bool has(i64 bit) const { return flags_[bit]; }

    // Another set takes the place of this one.
    void become(const Bits& bits) {
        for (i64 bit : bits_) flags_[bit] = false;
        bits_ = bits;
        for (i64 bit : bits_) flags_[bit] = true;
    }

    const Bits& bits() const { return bits_; }

    // The least bytes in which these copies can be held at once.
    i64 size() {
        i64 total = 0;
        for (i64 bit : bits_) total += t.bytes[bit] + (t.shared[bit] && t.last[bit] ? t.problem.size[t.value[bit]] : 0);
        for (i64 bit : bits_) {
            if (!is_in_block(bit)) continue;
            i64& most = most_[t.root[t.value[bit]]];
            total += std::max(t.floor[t.value[bit]] - most, i64(0));
            most = std::max(most, t.floor[t.value[bit]]);
        }
        for (i64 bit : bits_)
            if (is_in_block(bit)) most_[t.root[t.value[bit]]] = 0;
        return total;
    }

    // Bytes that the writes of a node surely take while it runs, if these copies are held afterwards.
    i64 taken(i64 node) const {
        if (t.plain[node] >= 0) return t.plain[node];
        i64 total = 0;
        for (i64 place = t.problem.writes_at[node]; place < t.problem.writes_at[node + 1]; place++)
            if (takes(place)) total += t.problem.size[t.problem.writes[place]];
        return total;
    }

    // What is held before a node runs, if this is held afterwards and has that size, and its own size; a last copy can
    // be read too.
    std::pair<Bits, i64> before(i64 node, i64 size) {
        Bits earlier;
        bool shared = false;
        for (i64 bit : bits_) {
            if (t.writer[bit] == node) {
                shared |= t.shared[bit];
                size -= t.bytes[bit];
            } else {
                earlier.push_back(bit);
            }
        }
        const auto kept = static_cast<std::ptrdiff_t>(earlier.size());
        for (i64 bit : t.reads_of(node)) {
            if (has(bit) || is_held(t.last_bit[t.value[bit]])) continue;
            shared |= t.shared[bit];
            size += t.bytes[bit];
            earlier.push_back(bit);
        }
        std::sort(earlier.begin() + kept, earlier.end());
        std::inplace_merge(earlier.begin(), earlier.begin() + kept, earlier.end());
        if (shared) {
            become(earlier);
            size = this->size();
        }
        return {std::move(earlier), size};
    }

  private:
    bool is_held(i64 bit) const { return bit >= 0 && flags_[bit]; }
    bool stays(i64 value) const { return is_held(t.ordinary_bit[value]) || is_held(t.last_bit[value]); }

    // Whether a copy is held in a block that others may share, and that is none of an output's last copy.
    bool is_in_block(i64 bit) const {
        if (!t.shared[bit] || t.last[bit] || t.root[t.value[bit]] < 0) return false;
        for (i64 value = t.value[bit]; value >= 0; value = t.base[value])
            if (is_held(t.last_bit[value])) return false;
        return true;
    }

    bool takes(i64 place) const {
        const i64 write = t.problem.writes[place];
        if (is_held(t.last_bit[write])) return true;
        if (t.base[write] != NO_VIEW) return false;
        if (t.problem.optional[write] && !is_held(t.ordinary_bit[write])) return false;
        for (i64 o = t.problem.over_at[place]; o < t.problem.over_at[place + 1]; o++) {
            const i64 read = t.problem.over[o];
            if (t.root[read] >= 0 && !stays(read)) return false;
        }
        return true;
    }

    const Tables& t;
    Bits bits_;
    std::vector<char> flags_;
    std::vector<i64> most_;  // for each root, while the size is reckoned
};

}  // namespace remat::pebbles
