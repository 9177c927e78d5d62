// Lifetimes moved about until all lie below a height: each that has no place takes that of others, which then look for
// places themselves.
//
// After the guided ejection search of Nagata and Braeysy (2009) for vehicles. A lifetime is put where it is free, as low
// as may be; if it is free nowhere, where those in its way weigh least, and they are taken out. One that found no free
// place weighs more from then on, so that the hard ones stay and the easy ones move about.
//
// Invariant: no two lifetimes that are placed meet in time and in address, and none reaches above the height.
#pragma once

#include <tuple>
#include <vector>

#include "solvers/native/random.hpp"
#include "solvers/placement/lives.hpp"

namespace remat::placement {

// Lifetimes that are placed, sorted by one end of their places; times stand beside them, to be read in one go.
class SortedPlaces {
  public:
    i64 count() const { return static_cast<i64>(places_.size()); }

    void put(Item item, i64 start, i64 end, Sizes key) {
        places_.insert(behind(key[item], key), {item, start, end});
    }

    // The key of the item is still what it was when it was put here.
    void take(Item item, Sizes key) {
        auto place = std::lower_bound(places_.begin(), places_.end(), key[item],
                                      [&](const Place& other, i64 own) { return key[other.item] < own; });
        while (place->item != item) ++place;
        places_.erase(place);
    }

    // Write those that live at some time from `start` to `end`, in order, and return how many they are.
    i64 meeting(i64 start, i64 end, const Array<Item>& into) const {
        i64 count = 0;
        for (const Place& one : places_) {  // without branches: it is looked at thousands of times
            into[count] = one.item;
            count += (one.start < end) & (one.end > start);
        }
        return count;
    }

  private:
    struct Place {
        Item item;
        i64 start, end;
    };

    std::vector<Place>::iterator behind(i64 own, Sizes key) {
        return std::upper_bound(places_.begin(), places_.end(), own,
                                [&](i64 own_, const Place& other) { return own_ < key[other.item]; });
    }

    std::vector<Place> places_;
};

// All that are placed, and for each part of the time those that live in it: most lifetimes lie within one part.
class PlacesByTime {
  public:
    PlacesByTime(const Lives& of, Sizes key) : start_(of.start), end_(of.end), key_(key) {
        Owned<i64, Item> sorted(of.start);
        std::sort(sorted.begin(), sorted.end());
        for (i64 part = 1; part < PARTS && sorted.size; part++)
            if (const i64 at = sorted[Item(sorted.size * part / PARTS)]; begins_.empty() || at > begins_.back())
                begins_.push_back(at);
        parts_.resize(begins_.size() + 1);
    }

    void put(Item item) {
        all_.put(item, start_[item], end_[item], key_);
        for (i64 part = first(item); part <= last(item); part++)
            parts_[part].put(item, start_[item], end_[item], key_);
    }

    void take(Item item) {
        all_.take(item, key_);
        for (i64 part = first(item); part <= last(item); part++) parts_[part].take(item, key_);
    }

    // Among which those are that meet this item.
    const SortedPlaces& around(Item item) const {
        const i64 part = first(item);
        return part == last(item) ? parts_[part] : all_;
    }

  private:
    static constexpr i64 PARTS = 64;

    i64 first(Item item) const { return part_of(start_[item]); }
    i64 last(Item item) const { return part_of(end_[item] - 1); }

    i64 part_of(i64 moment) const {
        return std::upper_bound(begins_.begin(), begins_.end(), moment) - begins_.begin();
    }

    Array<const i64, Item> start_, end_, key_;
    std::vector<i64> begins_;  // of all parts but the first
    std::vector<SortedPlaces> parts_;
    SortedPlaces all_;
};

class EjectionSearch {
  public:
    // `weight`: what it is worth not to take an item out, and `more`: by how much that rises each time it finds no free
    // place. `offset`: below 0 for what has no place yet.
    EjectionSearch(const Lives& of, Array<double, Item> weight, Array<const double, Item> more, i64 height,
                   Array<i64, Item> offset, i64 seed)
        : start_(of.start), end_(of.end), size_(of.size), weight_(weight), more_(more), offset_(offset),
          height_(height), random_(seed), top_(of.count()), below_(of, offset), above_(of, top_),
          by_offset_(of.count() + 1), by_top_(of.count() + 1) {
        for (Item item : size_.places()) {
            top_[item] = offset[item] + size_[item];
            if (offset[item] < 0 || top_[item] > height_)
                waiting_.push_back(item);
            else
                below_.put(item), above_.put(item);
        }
    }

    // How many have no place in the end, and the work: the items looked at. It ends after `most`, or when `halt` says so.
    std::tuple<i64, i64> run(i64 most, Halt halt) {
        i64 work = 0;
        while (!waiting_.empty() && work <= most && !halt) {
            std::swap(waiting_[random_.below(static_cast<i64>(waiting_.size()))], waiting_.back());
            const Item item = waiting_.back();
            waiting_.pop_back();
            work += below_.around(item).count() + 1;
            place(item);
        }
        for (Item item : waiting_) offset_[item] = -1;
        return {static_cast<i64>(waiting_.size()), work};
    }

  private:
    // A place, and what those in its way weigh.
    struct Choice {
        i64 offset;
        double weight;
    };

    void place(Item item) {
        const i64 count = below_.around(item).meeting(start_[item], end_[item], by_offset_);
        above_.around(item).meeting(start_[item], end_[item], by_top_);
        const Choice chosen = lightest(size_[item], count);
        if (chosen.weight > 0) {
            weight_[item] += more_[item];
            eject(chosen.offset, chosen.offset + size_[item], count);
        }
        offset_[item] = chosen.offset;
        top_[item] = chosen.offset + size_[item];
        below_.put(item), above_.put(item);
    }

    // The lowest free place; if there is none, the place where those in its way weigh least. Only places that begin where
    // another ends, or end where another begins, need be looked at.
    Choice lightest(i64 size, i64 count) const {
        Choice best{0, INFINITY_};
        Window up(*this, size, count);
        for (i64 next = -1; next < count && best.weight > 0; next++)
            if (!up.look(next < 0 ? 0 : top_[by_top_[next]], best)) break;
        Window down(*this, size, count);
        for (i64 next = 0; next <= count && best.weight > 0; next++) {
            const i64 offset = (next < count ? offset_[by_offset_[next]] : height_) - size;
            if (offset >= 0 && !down.look(offset, best)) break;
        }
        return best;
    }

    // A place that moves upwards, and what those that it meets weigh together.
    struct Window {
        const EjectionSearch& search;
        i64 size, count, begun = 0, ended = 0;
        double weight = 0;

        Window(const EjectionSearch& search_, i64 size_, i64 count_) : search(search_), size(size_), count(count_) {}

        // Note the place if it is better; false where nothing higher can be below the height.
        bool look(i64 offset, Choice& best) {
            if (offset + size > search.height_) return false;
            for (Item item; begun < count && search.offset_[item = search.by_offset_[begun]] < offset + size; begun++)
                weight += search.weight_[item];
            for (Item item; ended < count && search.top_[item = search.by_top_[ended]] <= offset; ended++)
                weight -= search.weight_[item];
            if (begun == ended)
                best = {offset, 0};
            else if (weight < best.weight * (1 - ROUNDING))
                best = {offset, std::max(weight, LEAST)};
            return true;
        }
    };

    void eject(i64 low, i64 high, i64 count) {
        for (Item item : by_offset_.first(count))
            if (offset_[item] < high && top_[item] > low) {
                waiting_.push_back(item);
                below_.take(item), above_.take(item);
            }
    }

    static constexpr double ROUNDING = 1e-9, LEAST = 1e-300;

    const Sizes start_, end_, size_;
    const Array<double, Item> weight_;
    const Array<const double, Item> more_;
    const Array<i64, Item> offset_;
    const i64 height_;
    Random random_;
    Owned<i64, Item> top_;
    PlacesByTime below_, above_;  // by offset, and by top
    Owned<Item> by_offset_, by_top_;  // those that meet the item in hand
    std::vector<Item> waiting_;
};

inline std::tuple<i64, i64> place_by_ejection(const Lives& lives, Array<double, Item> weight,
                                              Array<const double, Item> more, i64 height, Array<i64, Item> offset,
                                              i64 seed, i64 most, Halt halt) {
    require(all_as_long(lives.count(), weight, more, offset), "a weight, its rise and an offset for each lifetime");
    return EjectionSearch(lives, weight, more, height, offset, seed).run(most, halt);
}

}  // namespace remat::placement
