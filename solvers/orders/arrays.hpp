// A problem as flat arrays: the struct of `arrays.py`, field for field.
#pragma once

#include "solvers/native/array.hpp"

namespace remat {

enum class Node : i64 {};
enum class Value : i64 {};
enum class Read : i64 {};   // a place in `reads`
enum class Write : i64 {};  // a place in `writes`
enum class Use : i64 {};    // a place in `users`
enum class Step : i64 {};   // a place in an order

using Order = Array<const Node, Step>;

constexpr Value NO_VIEW{-2};

struct Arrays {
    Array<const i64, Node> cost, workspace;
    Array<const bool, Node> once, backward;
    Rows<Node, Value, Read> reads;
    Rows<Node, Value, Write> writes;
    Array<const Value, Write> view_of;  // the base, RESIDENT or NO_VIEW
    Rows<Write, Value> over;            // the reads that a write may overwrite
    Array<const i64, Value> size;
    Array<const Node, Value> writer;
    Rows<Value, Node, Use> users;  // readers, in order
    Array<const bool, Value> output, optional;
    bool unread_stay;
    i64 resident;

    auto fields() {
        return std::tie(cost, workspace, once, backward, reads.at, reads.items, writes.at, writes.items, view_of,
                        over.at, over.items, size, writer, users.at, users.items, output, optional, unread_stay,
                        resident);
    }

    // Of lengths alone: what the arrays name is believed to be as `arrays_of` made it, or each call would take longer.
    void check() const {
        require(all_as_long(nodes(), workspace, once, backward) && reads.are(nodes()) && writes.are(nodes()) &&
                    view_of.size == writes.items.size && over.are(writes.items.size) && users.are(values()) &&
                    all_as_long(values(), writer, output, optional),
                "arrays whose lengths do not make a problem");
    }

    i64 nodes() const { return cost.size; }
    i64 values() const { return size.size; }
};

}  // namespace remat
