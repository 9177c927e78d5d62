// Lifetimes as the loops have them: the structs of `lives.py` and `canonical.py`, field for field.
#pragma once

#include "solvers/native/array.hpp"

namespace remat::placement {

enum class Item : i64 {};     // a lifetime
enum class Section : i64 {};  // a moment when more is held than before and after

using Sizes = Array<const i64, Item>;

struct Lives {
    Array<const i64, Item> start, end;
    Sizes size;

    auto fields() { return std::tie(start, end, size); }

    void check() const { require(all_as_long(count(), start, end), "lifetimes without a start or an end"); }

    i64 count() const { return size.size; }
};

// Lifetimes by section: `first` is the first that each is in, `last` the one after its last.
struct Sections {
    Sizes size;
    Array<const Section, Item> first, last;
    Array<const i64, Section> held;  // the sum of the sizes

    auto fields() { return std::tie(size, first, last, held); }

    void check() const {
        require(all_as_long(count(), first, last), "lifetimes without a first section or a last");
        for (Item item : size.places())
            require(exists(first[item]) && first[item] < last[item] && i64(last[item]) <= held.size,
                    "a lifetime in sections that there are not");
    }

    i64 count() const { return size.size; }
    bool meet(Item one, Item other) const { return first[one] < last[other] && last[one] > first[other]; }
};

}  // namespace remat::placement
