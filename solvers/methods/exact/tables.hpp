// A problem's tables as `pack` in `tables.py` lays them out, one behind the other in a flat array.
#pragma once

#include "solvers/native/array.hpp"

namespace remat {

constexpr i64 MOST = 16;  // computes of one node, at most

struct Tables {
    i64 nodes, values, resident;
    bool stay;  // copies that nobody reads stay in memory to the end
    const i64 *cost, *workspace, *once, *reads_at, *reads;
    const i64* saved;  // for each place in `reads`: the bytes of the write that takes its place if it ends there
    const i64 *writes_at, *writes, *size, *writer, *users_at, *users, *optional;

    explicit Tables(Ints flat) : nodes(flat[0]), values(flat[1]), resident(flat[2]), stay(flat[3] != 0) {
        const i64* start = flat.data + 4;
        for (const i64** table : {&cost, &workspace, &once, &reads_at, &reads, &saved, &writes_at, &writes, &size,
                                  &writer, &users_at, &users, &optional})
            *table = flat.data + *start++;
    }

    using Row = Array<const i64>;
    Row reads_of(i64 node) const { return {reads + reads_at[node], reads_at[node + 1] - reads_at[node]}; }
    Row writes_of(i64 node) const { return {writes + writes_at[node], writes_at[node + 1] - writes_at[node]}; }
    Row users_of(i64 value) const { return {users + users_at[value], users_at[value + 1] - users_at[value]}; }

    // What a node writes in the place of this value, if it is the last to read it.
    i64 saved_by(i64 node, i64 value) const {
        for (i64 place = reads_at[node]; place < reads_at[node + 1]; place++)
            if (reads[place] == value) return saved[place];
        return 0;
    }
};

}  // namespace remat
