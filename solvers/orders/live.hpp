// What is in memory during an eviction walk, and what goes first when there is no room.
//
// What goes is the value of least score. Scores are not kept: each live value has a key that is never above its score,
// and only what comes first by key is scored. A score falls when a value is read, when it is wanted later than it was or
// not at all, and when something that it would be rebuilt from is there again; it has a new key then. It rises by
// itself.
#pragma once

#include <cmath>

#include "solvers/orders/arrays.hpp"
#include "solvers/orders/frontier.hpp"
#include "solvers/orders/queue.hpp"

namespace remat::orders {

constexpr Node NEVER{i64(1) << 60};
constexpr i64 CLOSURE = 400;      // ancestors counted in a recompute cost, at most
constexpr double PINNED = 1e200;  // the scores of what is being rebuilt for lie around this
constexpr double AT_ONCE = -1.0;  // the score of what nobody will read

enum class Group : i64 {};  // of first computes that follow each other

// What an eviction goes by: recompute cost and distance to these powers, weights, and what is kept for later.
struct Scoring {
    Array<const double, Value> weight;
    double cost_power, distance_power;
    Grid<const bool, Group, Value> keep;
    double hint;

    auto fields() { return std::tie(weight, cost_power, distance_power, keep, hint); }

    void check() const { require(weight.size == keep.columns, "a weight for each value, and whether it is kept"); }
};

// The powers that rules have; a general one takes ten times as long.
inline double power(double base, double exponent) {
    if (exponent == 1.0) return base;
    if (exponent == 0.5) return std::sqrt(base);
    return exponent == 0.0 ? 1.0 : std::pow(base, exponent);
}

class Live {
  public:
    Live(const Arrays& arrays, const Scoring& scoring)
        : live(arrays.values(), false), was_read(arrays.values(), false), pinned(arrays.values(), false),
          wanted_at(arrays.values(), -1), next_user(arrays.users.at.first(arrays.values())), nodes(arrays.nodes()),
          used(arrays.resident), arrays_(arrays), scoring_(scoring), values_(arrays.values()),
          next_use_(arrays.values(), NEVER), own_(arrays.values()), rebuild_(arrays.values()),
          stale_(arrays.values(), true), held_(arrays.values()), aside_(arrays.values()) {
        for (Value value : arrays.size.places()) {
            own_[value] = rebuild_[value] = cost_of(arrays.writer[value]);
            const auto users = arrays.users[value];
            if (users.size) next_use_[value] = users[0];
        }
    }

    Owned<bool, Value> live;
    Owned<bool, Value> was_read;  // or may go unread
    Owned<bool, Value> pinned;
    Owned<i64, Value> wanted_at;  // the place in the list being rebuilt at which it is next read, or -1
    Owned<Use, Value> next_user;  // the next reader not yet first computed
    Frontier<Node> nodes;         // of one search at a time, as is `values_`
    i64 used;                     // bytes in memory
    i64 looked = 0;               // nodes and values looked at so far

    // Go to the next first compute. In another group other values are kept for later.
    void go_to(Node stage, Group group) {
        stage_ = stage;
        if (group_ == group) return;
        group_ = group;
        i64 count = 0;
        for (const auto& [key, value] : held_) aside_[count++] = value;
        for (i64 place = 0; place < count; place++) look_again(aside_[place]);
    }

    void hold(Value value) {
        live[value] = true;
        was_read[value] = !arrays_.unread_stay || arrays_.optional[value];
        used += arrays_.size[value];
        if (arrays_.size[value]) held_.put(value, least_score(value));
        make_stale(value, true);
    }

    // Forget a live value. A copy that nobody has read stays in memory where the runtime keeps such copies.
    void drop(Value value) {
        live[value] = false;
        if (was_read[value]) used -= arrays_.size[value];
        if (arrays_.size[value]) held_.take_out(value);
        make_stale(value, false);
    }

    // Drop a value, which passes its next use on to what it would be rebuilt from.
    void evict(Value value) {
        drop(value);
        const Node use = next_use_[value];
        auto search = values_.start();
        search.put(value);
        while (!search.is_over())
            for (Value read : arrays_.reads[arrays_.writer[search.take()]]) {
                if (use >= next_use_[read]) continue;
                next_use_[read] = use;
                if (!live[read]) search.put(read);
            }
    }

    // Renew the next use of what a node reads: by a first compute, or where something missing is rebuilt from it.
    //
    // What is missing keeps its next use until it is there again, so that only what was just read has a new one.
    void renew(Node node, Node stage) {
        for (Value value : arrays_.reads[node]) {
            const Use next = next_user[value];
            Node soonest = next < arrays_.users.at[value + 1] ? arrays_.users.items[next] : NEVER;
            for (Node user : arrays_.users[value]) {
                if (user >= stage) break;
                for (Value write : arrays_.writes[user])
                    if (!live[write]) soonest = std::min(soonest, next_use_[write]);
            }
            next_use_[value] = soonest;
            look_again(value);
        }
    }

    // A value's score may be less than it was.
    void look_again(Value value) {
        if (held_.holds(value)) held_.put(value, least_score(value));
    }

    // The value to evict, if there is one.
    Value cheapest() {
        i64 count = 0;
        Value best = NONE;
        double least = INFINITY_;
        while (!held_.is_empty() && held_.first() != best) {
            const Value value = held_.first();
            if (pinned[value]) {
                aside_[count++] = value;
                held_.take_out(value);
                continue;
            }
            if (held_.key(value) == INFINITY_) break;
            const double score = score_of(value, least);
            held_.put(value, score);
            if (score <= least) {
                best = value;
                least = score;
            }
        }
        for (i64 place = 0; place < count; place++) held_.put(aside_[place], held_.key(aside_[place]));
        return best;
    }

  private:
    // What a value's recompute cost is multiplied by.
    double factor(Value value) const {
        const double distance = std::max(1.0, static_cast<double>(next_use_[value] - stage_));
        const double found = scoring_.weight[value] / power(distance, scoring_.distance_power);
        return scoring_.keep[group_][value] ? found * scoring_.hint : found;
    }

    // The score, or less if it is not known what rebuilding the value takes; infinite if it must stay.
    double least_score(Value value) const {
        if (!was_read[value]) return INFINITY_;
        const i64 wanted = wanted_at[value];
        if (wanted < 0 && next_use_[value] == NEVER) return AT_ONCE;
        if (rebuild_[value] == INFINITY_) return INFINITY_;
        if (wanted >= 0) return PINNED / (1.0 + static_cast<double>(wanted));
        return power(rebuild_[value] + 1.0, scoring_.cost_power) * factor(value);
    }

    // The score, or something above `most` if it is above that.
    double score_of(Value value, double most) {
        const double score = least_score(value);
        if (score == AT_ONCE || score > most || !stale_[value]) return score;
        double enough = INFINITY_;
        if (wanted_at[value] < 0 && most < INFINITY_)
            enough = 1.001 * std::pow(most / factor(value), 1.0 / scoring_.cost_power);
        find_recompute_cost(value, enough);
        return least_score(value);
    }

    // Whatever would be rebuilt through `value` has another recompute cost now.
    void make_stale(Value value, bool cheaper) {
        auto search = values_.start();
        search.put(value);
        while (!search.is_over()) {
            looked += 1;
            for (Node user : arrays_.users[search.take()]) {
                if (user >= stage_) break;  // it has not run yet
                for (Value write : arrays_.writes[user]) {
                    if (!search.meet(write)) continue;
                    stale_[write] = true;
                    if (cheaper) {
                        rebuild_[write] = own_[write];
                        look_again(write);
                    }
                    if (!live[write] && next_use_[write] < NEVER) search.put(write);
                }
            }
        }
    }

    double cost_of(Node node) const {
        return arrays_.once[node] ? INFINITY_ : static_cast<double>(arrays_.cost[node]);
    }

    // Find what rebuilding a value takes; no more is counted than shows that it is over `most`.
    void find_recompute_cost(Value value, double most) {
        double total = 0.0;
        auto search = nodes.start();
        search.meet(arrays_.writer[value]);
        search.put(arrays_.writer[value]);
        for (i64 count = 0; !search.is_over() && count < CLOSURE && total <= most; count++) {
            const Node node = search.take();
            looked += 1;
            total += cost_of(node);
            for (Value read : arrays_.reads[node])
                if (!live[read] && search.meet(arrays_.writer[read])) search.put(arrays_.writer[read]);
        }
        stale_[value] = total > most;
        rebuild_[value] = total;
    }

    const Arrays& arrays_;
    const Scoring& scoring_;
    Node stage_{0};
    Group group_{0};
    Frontier<Value> values_;
    Owned<Node, Value> next_use_;
    Owned<double, Value> own_;      // cost of the node that writes a value; infinite if it runs once
    Owned<double, Value> rebuild_;  // recompute costs, or less of those that are stale
    Owned<bool, Value> stale_;
    Queue held_;  // the live values that have a size
    Owned<Value> aside_;
};

}  // namespace remat::orders
