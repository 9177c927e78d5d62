// Values by key: the least at hand, any value's key changed in place.
//
// Invariant: no value stands there twice. Of equal keys the smaller value comes first, so that what comes out does not
// depend on what went in when.
#pragma once

#include <set>

#include "solvers/orders/arrays.hpp"

namespace remat::orders {

class Queue {
  public:
    explicit Queue(i64 values) : holds_(values, false), key_(values, 0.0) {}

    bool is_empty() const { return items_.empty(); }
    Value first() const { return items_.begin()->second; }
    double key(Value value) const { return key_[value]; }
    bool holds(Value value) const { return holds_[value]; }
    auto begin() const { return items_.begin(); }
    auto end() const { return items_.end(); }

    // Put a value in, or give it another key.
    void put(Value value, double key) {
        if (holds_[value]) {
            if (key_[value] == key) return;
            take_out(value);
        }
        holds_[value] = true;
        key_[value] = key;
        items_.emplace(key, value);
    }

    void take_out(Value value) {
        items_.erase({key_[value], value});
        holds_[value] = false;
    }

  private:
    std::set<std::pair<double, Value>> items_;
    Owned<bool, Value> holds_;
    Owned<double, Value> key_;
};

}  // namespace remat::orders
