// Lifetimes placed from the bottom up, without going back: always the one whose lowest place is lowest of all.
//
// What is placed makes a skyline over time, and a lifetime goes on top of all that it meets. Places only rise, so that
// those that wait stand in a queue by the place that they had when they were last looked at: the first is looked at
// anew, and goes back into the queue if it has risen.
//
// Invariant: no two lifetimes meet in time and in address.
#pragma once

#include <queue>
#include <tuple>
#include <vector>

#include "solvers/placement/lives.hpp"

namespace remat::placement {

// The top of what is placed, by section: a tree of maxima over ranges.
class Skyline {
  public:
    explicit Skyline(i64 sections) : width_(1) {
        while (width_ < sections) width_ *= 2;
        most_.assign(2 * width_, 0), whole_.assign(2 * width_, -1);
    }

    i64 highest(Section first, Section last) const { return highest({1, 0, width_}, i64(first), i64(last)); }

    void set(Section first, Section last, i64 top) { set({1, 0, width_}, i64(first), i64(last), top); }

  private:
    struct Range {
        i64 place, first, last;

        i64 middle() const { return (first + last) / 2; }
        Range left() const { return {2 * place, first, middle()}; }
        Range right() const { return {2 * place + 1, middle(), last}; }
    };

    i64 highest(Range range, i64 first, i64 last) const {
        if (first <= range.first && range.last <= last) return most_[range.place];
        if (whole_[range.place] >= 0) return whole_[range.place];
        const i64 left = first < range.middle() ? highest(range.left(), first, last) : 0;
        return last > range.middle() ? std::max(left, highest(range.right(), first, last)) : left;
    }

    void set(Range range, i64 first, i64 last, i64 top) {
        if (first <= range.first && range.last <= last) return fill(range.place, top);
        const i64 place = range.place;
        if (whole_[place] >= 0) {
            fill(2 * place, whole_[place]), fill(2 * place + 1, whole_[place]);
            whole_[place] = -1;
        }
        if (first < range.middle()) set(range.left(), first, last, top);
        if (last > range.middle()) set(range.right(), first, last, top);
        most_[place] = std::max(most_[2 * place], most_[2 * place + 1]);
    }

    void fill(i64 place, i64 top) { most_[place] = whole_[place] = top; }

    i64 width_;
    std::vector<i64> most_;
    std::vector<i64> whole_;  // the top in all of a range, or -1 where it differs
};

// Fill `offset`. `rank`: the preference among equal places. Returns the work: how often a lifetime was looked at.
inline i64 place_from_bottom(const Sections& items, Sizes rank, Array<i64, Item> offset) {
    require(all_as_long(items.count(), rank, offset), "a rank and an offset for each lifetime");
    using Waiting = std::tuple<i64, i64, Item>;  // the place when it was last looked at, the rank, the item
    std::vector<Waiting> all;
    for (Item item : items.size.places()) all.emplace_back(0, rank[item], item);
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<Waiting>> queue({}, std::move(all));
    Skyline skyline(items.held.size);
    i64 work = 0;
    for (; !queue.empty(); work++) {
        const auto [known, own, item] = queue.top();
        queue.pop();
        const i64 lowest = skyline.highest(items.first[item], items.last[item]);
        if (lowest > known) {
            queue.emplace(lowest, own, item);
            continue;
        }
        offset[item] = lowest;
        skyline.set(items.first[item], items.last[item], lowest + items.size[item]);
    }
    return work;
}

}  // namespace remat::placement
