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

#include "solvers/native/array.hpp"
#include "solvers/native/random.hpp"

namespace remat::placement {

// Lifetimes that are placed, sorted by one end of their places; times stand beside them, to be read in one go.
class SortedPlaces {
  public:
    SortedPlaces(Ints start, Ints end, Ints key) : start_(start), end_(end), key_(key), items_(start.size + 1),
                                                   starts_(start.size + 1), ends_(start.size + 1) {}

    i64 count() const { return count_; }

    void put(i64 item) {
        const i64 at = std::upper_bound(items_.begin(), items_.begin() + count_, key_[item],
                                        [&](i64 key, i64 other) { return key < key_[other]; }) - items_.begin();
        for (Owned<i64>* column : {&items_, &starts_, &ends_})
            std::copy_backward(column->begin() + at, column->begin() + count_, column->begin() + count_ + 1);
        set(at, item);
        count_++;
    }

    // The items that `stays` is true of stay.
    template <class Stays>
    void filter(Stays stays) {
        i64 kept = 0;
        for (i64 place = 0; place < count_; place++)
            if (stays(items_[place])) set(kept++, items_[place]);
        count_ = kept;
    }

    // Write those that live at some time from `start` to `end`, in order, and return how many they are.
    i64 meeting(i64 start, i64 end, Ints into) const {
        i64 count = 0;
        for (i64 place = 0; place < count_; place++) {  // without branches: it is looked at thousands of times
            into[count] = items_[place];
            count += (starts_[place] < end) & (ends_[place] > start);
        }
        return count;
    }

  private:
    void set(i64 place, i64 item) {
        items_[place] = item;
        starts_[place] = start_[item];
        ends_[place] = end_[item];
    }

    Ints start_, end_, key_;
    Owned<i64> items_, starts_, ends_;
    i64 count_ = 0;
};

class EjectionSearch {
  public:
    // `weight`: what it is worth not to take an item out, and `more`: by how much that rises each time it finds no free
    // place. `offset`: below 0 for what has no place yet.
    EjectionSearch(Ints start, Ints end, Ints size, Floats weight, Floats more, i64 height, Ints offset, i64 seed)
        : start_(start), end_(end), size_(size), weight_(weight), more_(more), offset_(offset), height_(height),
          random_(seed), top_(size.size), ejected_(size.size, false), below_(start, end, offset),
          above_(start, end, top_), by_offset_(size.size + 1), by_top_(size.size + 1) {
        for (i64 item = 0; item < size.size; item++) {
            top_[item] = offset[item] + size[item];
            if (offset[item] < 0 || top_[item] > height)
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
            const i64 item = waiting_.back();
            waiting_.pop_back();
            work += below_.count() + 1;
            place(item);
        }
        for (i64 item : waiting_) offset_[item] = -1;
        return {static_cast<i64>(waiting_.size()), work};
    }

  private:
    // A place, and what those in its way weigh.
    struct Choice {
        i64 offset;
        double weight;
    };

    void place(i64 item) {
        const i64 count = below_.meeting(start_[item], end_[item], by_offset_);
        above_.meeting(start_[item], end_[item], by_top_);
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
            for (i64 item; begun < count && search.offset_[item = search.by_offset_[begun]] < offset + size; begun++)
                weight += search.weight_[item];
            for (i64 item; ended < count && search.top_[item = search.by_top_[ended]] <= offset; ended++)
                weight -= search.weight_[item];
            if (begun == ended)
                best = {offset, 0};
            else if (weight < best.weight * (1 - ROUNDING))
                best = {offset, std::max(weight, LEAST)};
            return true;
        }
    };

    void eject(i64 low, i64 high, i64 count) {
        const std::size_t before = waiting_.size();
        for (i64 item : by_offset_.slice(0, count))
            if (offset_[item] < high && top_[item] > low) {
                waiting_.push_back(item);
                ejected_[item] = true;
            }
        const auto stays = [&](i64 item) { return !ejected_[item]; };
        below_.filter(stays), above_.filter(stays);
        for (std::size_t place = before; place < waiting_.size(); place++) ejected_[waiting_[place]] = false;
    }

    static constexpr double ROUNDING = 1e-9, LEAST = 1e-300;

    Ints start_, end_, size_;
    Floats weight_, more_;
    Ints offset_;
    i64 height_;
    Random random_;
    Owned<i64> top_;
    Owned<bool> ejected_;  // between two sentences only
    SortedPlaces below_, above_;  // by offset, and by top
    Owned<i64> by_offset_, by_top_;  // those that meet the item in hand
    std::vector<i64> waiting_;
};

inline std::tuple<i64, i64> place_by_ejection(Ints start, Ints end, Ints size, Floats weight, Floats more, i64 height,
                                              Ints offset, i64 seed, i64 most, Halt halt) {
    return EjectionSearch(start, end, size, weight, more, height, offset, seed).run(most, halt);
}

}  // namespace remat::placement
