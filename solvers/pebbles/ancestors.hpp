// How many nodes must run at least before copies are there: those that make them, and all that these need.
#pragma once

#include "solvers/pebbles/copies.hpp"

namespace remat::pebbles {

// For one set of copies and those a step before it, which have all but one of the nodes that make them.
class Ancestors {
  public:
    // `writers`: the nodes that make the copies, in rising order.
    Ancestors(const Tables& tables, std::vector<Node> writers)
        : t(tables), writers_(std::move(writers)), upwards_(rows(), 0), downwards_(rows(), 0) {
        const std::size_t last = writers_.size();
        for (std::size_t place = 0; place < last; ++place) {
            join(upwards_, place + 1, {upwards_.data() + place * width(), t.needed.columns}, writers_[place]);
            const std::size_t from = last - place;
            join(downwards_, from - 1, {downwards_.data() + from * width(), t.needed.columns}, writers_[from - 1]);
        }
    }

    const std::vector<Node>& writers() const { return writers_; }

    // Of all these copies.
    i64 count() const { return count_of(words(writers_.size(), writers_.size())); }

    // Of those that are held before a node runs that makes some of them: what it reads takes their place.
    i64 before(Node node) const {
        auto found = but_for(node);
        for (Bit read : t.reads[node])
            for (i64 word : t.needed[t.writer[read]].places()) found[word] |= t.needed[t.writer[read]][word];
        return count_of(found);
    }

    // Of all but one copy; `rest`: the others.
    i64 without(Bit bit, const Bits& rest) const {
        const Node writer = t.writer[bit];
        const bool stays = std::any_of(rest.begin(), rest.end(), [&](Bit other) { return t.writer[other] == writer; });
        return stays ? count() : count_of(but_for(writer));
    }

  private:
    using Words = std::vector<i64>;

    std::size_t width() const { return static_cast<std::size_t>(t.needed.columns); }
    std::size_t rows() const { return (writers_.size() + 1) * width(); }

    // What a row of nodes needs, and one node more.
    void join(Words& all, std::size_t row, Array<const i64> before, Node node) const {
        for (i64 word : before.places())
            all[row * width() + static_cast<std::size_t>(word)] = before[word] | t.needed[node][word];
    }

    // What the first nodes need, so many of them, and those from a place on.
    Words words(std::size_t first, std::size_t from) const {
        Words found(width());
        for (std::size_t word = 0; word < width(); ++word)
            found[word] = upwards_[first * width() + word] | downwards_[from * width() + word];
        return found;
    }

    Words but_for(Node node) const {
        const auto place = static_cast<std::size_t>(std::lower_bound(writers_.begin(), writers_.end(), node) - writers_.begin());
        return words(place, place + 1);
    }

    static i64 count_of(const Words& words) {
        i64 count = 0;
        for (i64 word : words) count += __builtin_popcountll(static_cast<std::uint64_t>(word));
        return count;
    }

    const Tables& t;
    const std::vector<Node> writers_;
    Words upwards_, downwards_;  // row by row, what the first nodes need, and the last ones
};

}  // namespace remat::pebbles
