// Sets that a search has met, each once, and those that it has looked at.
#pragma once

#include <unordered_map>

#include "solvers/pebbles/copies.hpp"

namespace remat::pebbles {

// A set of copies, how low a peak it was met at, and the step that leads from it to the set `after`.
struct State {
    i64 first, end;  // where its bits lie
    i64 peak, size, after, node, bit;
};

class States {
  public:
    static constexpr i64 NEVER = i64(1) << 62;
    static constexpr std::size_t ENTRY = 64;  // bytes of a place in the table, about

    State& operator[](i64 number) { return states_[number]; }
    Bits bits_of(i64 number) const {
        return Bits(bits_.begin() + states_[number].first, bits_.begin() + states_[number].end);
    }
    i64 bytes() const {
        return static_cast<i64>(bits_.size() * sizeof(std::uint32_t) + states_.size() * (sizeof(State) + ENTRY));
    }

    // The number of a set, which is new if its peak is NEVER.
    i64 number(const Bits& bits) {
        const std::uint64_t key = hash(bits);
        const auto [begin, end] = known_.equal_range(key);
        for (auto one = begin; one != end; ++one)
            if (equals(one->second, bits)) return one->second;
        const i64 number = static_cast<i64>(states_.size()), first = static_cast<i64>(bits_.size());
        bits_.insert(bits_.end(), bits.begin(), bits.end());
        states_.push_back({first, static_cast<i64>(bits_.size()), NEVER, 0, -1, -1, -1});
        known_.emplace(key, number);
        return number;
    }

    // Whether one that was looked at is part of this set; if not, this is looked at now.
    bool is_looked_at(const Held& held, i64 number) {
        const Bits& bits = held.bits();
        if (static_cast<i64>(looked_.size()) <= bits.back()) looked_.resize(static_cast<std::size_t>(bits.back() + 1));
        const Look own = look_of(bits, number);
        for (i64 bit : bits)
            for (const Look& other : looked_[bit])
                if (!(other.high & ~own.high) && !(other.low & ~own.low) && is_within(other.number, held)) return true;
        const i64 rarest = *std::min_element(bits.begin(), bits.end(), [&](i64 one, i64 other) {
            return looked_[one].size() < looked_[other].size();
        });
        looked_[rarest].push_back(own);
        count_ += 1;
        return false;
    }

    i64 looked_at() const { return count_; }

  private:
    // A set that was looked at, and marks of its bits: what has other marks is no part of a set without them.
    struct Look {
        std::uint64_t high, low;
        i64 number;
    };

    static std::uint64_t mixed(i64 bit) {
        std::uint64_t word = static_cast<std::uint64_t>(bit + 1) * 0x9e3779b97f4a7c15U;
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
        return word ^ (word >> 27);
    }

    static std::uint64_t hash(const Bits& bits) {
        std::uint64_t found = 0;
        for (i64 bit : bits) found += mixed(bit);
        return found;
    }

    static Look look_of(const Bits& bits, i64 number) {
        Look look{0, 0, number};
        for (i64 bit : bits) {
            const std::uint64_t word = mixed(bit), mark = std::uint64_t(1) << (word & 63);
            (word & 64 ? look.high : look.low) |= mark;
        }
        return look;
    }

    bool equals(i64 number, const Bits& bits) const {
        const State& state = states_[number];
        return state.end - state.first == static_cast<i64>(bits.size()) &&
               std::equal(bits.begin(), bits.end(), bits_.begin() + state.first);
    }

    bool is_within(i64 number, const Held& held) const {
        const State& state = states_[number];
        return std::all_of(bits_.begin() + state.first, bits_.begin() + state.end, [&](i64 bit) { return held.has(bit); });
    }

    std::vector<State> states_;
    std::vector<std::uint32_t> bits_;
    std::unordered_multimap<std::uint64_t, i64> known_;
    std::vector<std::vector<Look>> looked_;  // by one of their bits
    i64 count_ = 0;
};

}  // namespace remat::pebbles
