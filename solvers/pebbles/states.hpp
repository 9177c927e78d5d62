// Sets that a search has met, each once, and those that it has looked at.
#pragma once

#include <unordered_map>

#include "solvers/pebbles/copies.hpp"

namespace remat::pebbles {

enum class Number : i64 {};  // of a state

// A set of copies, how low a peak it was met at, and the step that leads from it to the set `after`: a node that runs,
// or else a bit that is made of nothing.
struct State {
    i64 first, end;  // where its bits lie
    i64 peak, size;
    Number after;
    Node node;
    Bit bit;
};

class States {
  public:
    static constexpr i64 NEVER = i64(1) << 62;

    explicit States(i64 bits) : looked_(bits) {}

    State& operator[](Number number) { return states_[static_cast<std::size_t>(number)]; }
    Bits bits_of(Number number) const {
        const auto own = packed(number);
        Bits bits(static_cast<std::size_t>(own.size));
        std::transform(own.begin(), own.end(), bits.begin(), [](std::uint32_t bit) { return Bit(bit); });
        return bits;
    }
    // Whether they take as much memory as they may.
    bool are_full() const {
        return bits_.size() * sizeof(std::uint32_t) + states_.size() * (sizeof(State) + ENTRY) > ROOM;
    }

    // The number of a set, which is new if its peak is NEVER.
    Number number(const Bits& bits) {
        const std::uint64_t key = hash(bits);
        const auto [begin, end] = known_.equal_range(key);
        for (auto one = begin; one != end; ++one)
            if (equals(one->second, bits)) return one->second;
        const Number number{static_cast<i64>(states_.size())};
        const i64 first = static_cast<i64>(bits_.size());
        for (Bit bit : bits) bits_.push_back(static_cast<std::uint32_t>(bit));
        states_.push_back({first, static_cast<i64>(bits_.size()), NEVER, 0, NONE, NONE, NONE});
        known_.emplace(key, number);
        return number;
    }

    // Whether one that was looked at is part of this set; if not, this is looked at now.
    bool is_looked_at(const Held& held, Number number) {
        const Bits& bits = held.bits();
        const Look own = look_of(bits, number);
        for (Bit bit : bits)
            for (const Look& other : looked_[bit])
                if (!(other.high & ~own.high) && !(other.low & ~own.low) && is_within(other.number, held)) return true;
        const Bit rarest = *std::min_element(bits.begin(), bits.end(), [&](Bit one, Bit other) {
            return looked_[one].size() < looked_[other].size();
        });
        looked_[rarest].push_back(own);
        count_ += 1;
        return false;
    }

    i64 looked_at() const { return count_; }

  private:
    static constexpr std::size_t ENTRY = 64;                   // bytes of a place in the table, about
    static constexpr std::size_t ROOM = std::size_t(1) << 28;  // bytes that states may take

    // A set that was looked at, and marks of its bits: what has other marks is no part of a set without them.
    struct Look {
        std::uint64_t high, low;
        Number number;
    };

    static std::uint64_t mixed(Bit bit) {
        std::uint64_t word = (static_cast<std::uint64_t>(bit) + 1) * 0x9e3779b97f4a7c15U;
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
        return word ^ (word >> 27);
    }

    static std::uint64_t hash(const Bits& bits) {
        std::uint64_t found = 0;
        for (Bit bit : bits) found += mixed(bit);
        return found;
    }

    static Look look_of(const Bits& bits, Number number) {
        Look look{0, 0, number};
        for (Bit bit : bits) {
            const std::uint64_t word = mixed(bit), mark = std::uint64_t(1) << (word & 63);
            (word & 64 ? look.high : look.low) |= mark;
        }
        return look;
    }

    Array<const std::uint32_t> packed(Number number) const {
        const State& state = states_[static_cast<std::size_t>(number)];
        return {bits_.data() + state.first, state.end - state.first};
    }

    bool equals(Number number, const Bits& bits) const {
        const auto own = packed(number);
        return std::equal(own.begin(), own.end(), bits.begin(), bits.end(),
                          [](std::uint32_t one, Bit other) { return Bit(one) == other; });
    }

    bool is_within(Number number, const Held& held) const {
        const auto own = packed(number);
        return std::all_of(own.begin(), own.end(), [&](std::uint32_t bit) { return held.has(Bit(bit)); });
    }

    std::vector<State> states_;
    std::vector<std::uint32_t> bits_;
    std::unordered_multimap<std::uint64_t, Number> known_;
    Owned<std::vector<Look>, Bit> looked_;  // by one of their bits
    i64 count_ = 0;
};

}  // namespace remat::pebbles
