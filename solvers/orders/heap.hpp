// A heap of values by key: the least at hand, any value's key changed in place.
//
// Invariant: `place_of(value)` is where a value stands in the heap, or -1; no value stands there twice. Of equal keys
// the smaller value comes first, so that what comes out does not depend on what went in when.
#pragma once

#include "solvers/orders/arrays.hpp"

namespace remat::orders {

class Heap {
  public:
    explicit Heap(i64 values) : items_(values), place_(values, -1), key_(values, 0.0) {}

    i64 count() const { return count_; }
    Value item(i64 place) const { return items_[place]; }
    double key(Value value) const { return key_[value]; }
    bool holds(Value value) const { return place_[value] >= 0; }

    // Put a value in, or give it another key.
    void put(Value value, double key) {
        i64 place = place_[value];
        key_[value] = key;
        if (place < 0) {
            place = count_++;
            set(place, value);
        }
        settle(place);
    }

    void take_out(Value value) {
        const i64 place = place_[value];
        place_[value] = -1;
        const Value last = items_[--count_];
        if (last == value) return;
        set(place, last);
        settle(place);
    }

  private:
    void set(i64 place, Value value) {
        items_[place] = value;
        place_[value] = place;
    }

    bool comes_first(Value one, Value other) const {
        return key_[one] < key_[other] || (key_[one] == key_[other] && one < other);
    }

    void settle(i64 place) {
        if (rise(place) == place) sink(place);
    }

    i64 rise(i64 place) {
        const Value value = items_[place];
        while (place) {
            const i64 above = (place - 1) >> 1;
            const Value other = items_[above];
            if (!comes_first(value, other)) break;
            set(place, other);
            place = above;
        }
        set(place, value);
        return place;
    }

    void sink(i64 place) {
        const Value value = items_[place];
        while (true) {
            i64 below = 2 * place + 1;
            if (below >= count_) break;
            if (below + 1 < count_ && comes_first(items_[below + 1], items_[below])) below += 1;
            const Value other = items_[below];
            if (!comes_first(other, value)) break;
            set(place, other);
            place = below;
        }
        set(place, value);
    }

    Owned<Value> items_;
    Owned<i64, Value> place_;
    Owned<double, Value> key_;
    i64 count_ = 0;
};

}  // namespace remat::orders
