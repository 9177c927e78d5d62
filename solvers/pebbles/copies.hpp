// Sets of copies that are in memory together, and what a compute makes of them, by the tables of `copies.py`.
//
// Invariant: whatever copies an order holds, `size` of them and `need` of a compute between them is no more than it takes.
#pragma once

#include <functional>
#include <vector>

#include "solvers/orders/arrays.hpp"

namespace remat::pebbles {

enum class Bit : i64 {};
using Bits = std::vector<Bit>;  // in rising order

// The struct of `copies.py`, field for field. A bit is a copy of a value, or the last copy of an output.
struct Tables {
    static constexpr i64 WORD = 64;  // nodes in a word of `needed`

    Arrays problem;
    Array<const Value, Bit> value;
    Array<const Node, Bit> writer;
    Array<const i64, Bit> bytes;  // none where a copy may share memory
    Array<const bool, Bit> last, shared;
    Array<const Bit, Value> ordinary_bit, last_bit;
    Rows<Node, Bit> reads, writes;
    Array<const i64, Node> plain;   // bytes that the writes take, whatever is held; -1 if that depends
    Array<const i64, Node> weight;  // what it takes at most to hold what a node reads for longer
    Array<const Value, Value> base, root;  // as `Blocks` has them, as `floor`
    Array<const i64, Value> floor;
    Grid<const i64, Node> needed;  // the nodes that each one needs, itself included

    auto fields() {
        return std::tie(problem, value, writer, bytes, last, shared, ordinary_bit, last_bit, reads.at, reads.items,
                        writes.at, writes.items, plain, weight, base, root, floor, needed);
    }

    void check() const {
        const i64 nodes = problem.nodes();
        require(all_as_long(count(), writer, bytes, last, shared) && reads.are(nodes) && writes.are(nodes) &&
                    all_as_long(nodes, plain, weight) && needed.rows == nodes && needed.columns * WORD >= nodes &&
                    all_as_long(problem.values(), ordinary_bit, last_bit, base, root, floor),
                "arrays whose lengths do not make copies of a problem");
    }

    i64 count() const { return value.size; }
    bool needs(Node node, Node other) const { return needed[node][i64(other) / WORD] >> (i64(other) % WORD) & 1; }

    // Those that make these copies, in their order.
    std::vector<Node> writers_of(const Bits& bits) const {
        std::vector<Node> nodes;
        for (Bit bit : bits) nodes.push_back(writer[bit]);
        std::sort(nodes.begin(), nodes.end());
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        return nodes;
    }

    // Whether another of these copies cannot be made without a node.
    bool is_needed(Node node, const Bits& bits) const {
        return std::any_of(bits.begin(), bits.end(),
                           [&](Bit bit) { return writer[bit] != node && needs(writer[bit], node); });
    }

    // A set of copies that is wanted: each once, in rising order.
    Bits checked(Array<const Bit> wanted) const {
        const bool rise = std::adjacent_find(wanted.begin(), wanted.end(), std::greater_equal<>()) == wanted.end();
        require(rise && all_below(wanted, count()), "copies that there are none of, or that do not rise");
        return Bits(wanted.begin(), wanted.end());
    }
};

// One set at a time, as flags.
class Held {
  public:
    explicit Held(const Tables& tables) : t(tables), flags_(t.count(), false), most_(t.floor.size, 0) {}

    bool has(Bit bit) const { return flags_[bit]; }

    // Another set takes the place of this one.
    void become(const Bits& bits) {
        if (bits == bits_) return;
        for (Bit bit : bits_) flags_[bit] = false;
        bits_ = bits;
        for (Bit bit : bits_) flags_[bit] = true;
    }

    const Bits& bits() const { return bits_; }

    // The least bytes in which these copies can be held at once.
    i64 size() {
        i64 total = 0;
        for (Bit bit : bits_) total += t.bytes[bit] + (t.shared[bit] && t.last[bit] ? t.problem.size[t.value[bit]] : 0);
        for (Bit bit : bits_) {
            if (!is_in_block(bit)) continue;
            i64& most = most_[t.root[t.value[bit]]];
            total += std::max(t.floor[t.value[bit]] - most, i64(0));
            most = std::max(most, t.floor[t.value[bit]]);
        }
        for (Bit bit : bits_)
            if (is_in_block(bit)) most_[t.root[t.value[bit]]] = 0;
        return total;
    }

    // Bytes that the writes of a node surely take while it runs, if these copies are held afterwards.
    i64 taken(Node node) const {
        if (t.plain[node] >= 0) return t.plain[node];
        i64 total = 0;
        for (Write place : t.problem.writes.places(node))
            if (takes(place)) total += t.problem.size[t.problem.writes.items[place]];
        return total;
    }

    // What is held before a node runs, if this is held afterwards and has that size, and its own size; a last copy can
    // be read too.
    std::pair<Bits, i64> before(Node node, i64 size) {
        Bits earlier;
        earlier.reserve(bits_.size() + static_cast<std::size_t>(t.reads[node].size));
        bool shared = false;
        for (Bit bit : bits_) {
            if (t.writer[bit] == node) {
                shared |= t.shared[bit];
                size -= t.bytes[bit];
            } else {
                earlier.push_back(bit);
            }
        }
        const auto kept = static_cast<std::ptrdiff_t>(earlier.size());
        for (Bit bit : t.reads[node]) {
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
    bool is_held(Bit bit) const { return exists(bit) && flags_[bit]; }
    bool stays(Value value) const { return is_held(t.ordinary_bit[value]) || is_held(t.last_bit[value]); }

    // Whether a copy is held in a block that others may share, and that is none of an output's last copy.
    bool is_in_block(Bit bit) const {
        if (!t.shared[bit] || t.last[bit] || !exists(t.root[t.value[bit]])) return false;
        for (Value value = t.value[bit]; exists(value); value = t.base[value])
            if (is_held(t.last_bit[value])) return false;
        return true;
    }

    bool takes(Write place) const {
        const Value write = t.problem.writes.items[place];
        if (is_held(t.last_bit[write])) return true;
        if (t.base[write] != NO_VIEW) return false;
        if (t.problem.optional[write] && !is_held(t.ordinary_bit[write])) return false;
        for (Value read : t.problem.over[place])
            if (exists(t.root[read]) && !stays(read)) return false;
        return true;
    }

    const Tables& t;
    Bits bits_;
    Owned<bool, Bit> flags_;
    Owned<i64, Value> most_;  // for each root, while the size is reckoned
};

}  // namespace remat::pebbles
