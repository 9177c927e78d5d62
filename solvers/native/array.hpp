// Arrays as the loops see them: a pointer and a length, indexed by numbers of one kind. The memory is numpy's or the
// loop's own. `make sanitize` checks every place that is read or written; other builds check none.
//
// `enum class Node : i64 {};` is a kind of numbers. It is no plain number and none of another kind, so that what is
// indexed by one takes no other. A number below 0 stands for nothing.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace remat {

using i64 = std::int64_t;
constexpr double INFINITY_ = std::numeric_limits<double>::infinity();

template <class Kind>
using IfKind = std::enable_if_t<std::is_enum_v<Kind>, int>;

template <class Kind, IfKind<Kind> = 0>
constexpr Kind operator+(Kind one, i64 more) { return Kind(i64(one) + more); }
template <class Kind, IfKind<Kind> = 0>
constexpr Kind operator-(Kind one, i64 less) { return Kind(i64(one) - less); }
template <class Kind, IfKind<Kind> = 0>
constexpr i64 operator-(Kind one, Kind other) { return i64(one) - i64(other); }
template <class Kind, IfKind<Kind> = 0>
constexpr Kind& operator++(Kind& one) { return one = one + 1; }
template <class Kind, IfKind<Kind> = 0>
constexpr Kind operator++(Kind& one, int) { return ++one - 1; }
template <class Kind, IfKind<Kind> = 0>
constexpr Kind& operator--(Kind& one) { return one = one - 1; }

// No number of any kind.
struct None {
    template <class Kind, IfKind<Kind> = 0>
    constexpr operator Kind() const { return Kind(-1); }
};
constexpr None NONE{};

template <class Kind>
constexpr bool exists(Kind one) { return i64(one) >= 0; }

// The numbers from `first` up to, not including, `end`; or down to it. A range is its own iterator.
template <class At, int BY = 1>
class Range {
  public:
    Range(At first, At end) : first_(first), end_(end) {}
    explicit Range(i64 count) : Range(At(0), At(count)) {}

    Range begin() const { return *this; }
    Range end() const { return {end_, end_}; }
    At operator*() const { return first_; }
    void operator++() { first_ = first_ + BY; }
    bool operator!=(const Range& other) const { return first_ != other.first_; }

    Range<At, -BY> backwards() const { return {end_ - BY, first_ - BY}; }

  private:
    At first_, end_;
};

// Items that lie side by side. As with a pointer, a constant array does not make its items constant: `Array<const T>`
// does.
template <class T, class At = i64>
struct Array {
    T* data = nullptr;
    i64 size = 0;

    Array() = default;
    Array(T* data_, i64 size_) : data(data_), size(size_) {}
    template <class Other, std::enable_if_t<std::is_same_v<const Other, T>, int> = 0>
    Array(const Array<Other, At>& other) : Array(other.data, other.size) {}

    T& operator[](At place) const {
        assert(i64(place) >= 0 && i64(place) < size);
        return data[i64(place)];
    }
    T* begin() const { return data; }
    T* end() const { return data + size; }
    T& last() const { return (*this)[At(size - 1)]; }
    Range<At> places() const { return Range<At>(size); }

    // The items from `first` up to, not including, `end`.
    Array<T> slice(At first, At end) const {
        assert(At(0) <= first && first <= end && end <= At(size));
        return {data + i64(first), end - first};
    }
    Array first(i64 count) const {
        assert(0 <= count && count <= size);
        return {data, count};
    }
    void fill(T item) const { std::fill(begin(), end(), item); }
};

using Ints = Array<const i64>;
using Floats = Array<const double>;

// Refuse what Python gave.
inline void require(bool is_so, const char* otherwise) {
    if (!is_so) throw std::invalid_argument(otherwise);
}

// Whether all these arrays have so many items.
template <class... Arrays>
bool all_as_long(i64 size, const Arrays&... arrays) {
    return ((arrays.size == size) && ...);
}

// Whether all items are numbers of so many things.
template <class T, class At>
bool all_below(Array<T, At> items, i64 count) {
    return std::all_of(items.begin(), items.end(), [&](T item) { return exists(item) && i64(item) < count; });
}

// Rows of items that lie one after the other: row i from `at[i]` up to, not including, `at[i + 1]`.
template <class Row, class T, class Place = i64>
struct Rows {
    Array<const Place, Row> at;
    Array<const T, Place> items;

    Array<const T> operator[](Row row) const { return items.slice(at[row], at[row + 1]); }
    Range<Place> places(Row row) const { return {at[row], at[row + 1]}; }

    // Whether these are so many rows.
    bool are(i64 count) const {
        return at.size == count + 1 && at[Row(0)] == Place(0) && at.last() == Place(items.size);
    }
};

// Rows of equal length.
template <class T, class Row = i64, class Column = i64>
struct Grid {
    T* data = nullptr;
    i64 rows = 0, columns = 0;

    Array<T, Column> operator[](Row row) const {
        assert(i64(row) >= 0 && i64(row) < rows);
        return {data + i64(row) * columns, columns};
    }
};

// An array that owns its memory. A returned one becomes a numpy array.
template <class T, class At = i64>
struct Owned : Array<T, At> {
    std::unique_ptr<T[]> memory;

    Owned() = default;
    // The items are left as they are in memory.
    explicit Owned(i64 size) : memory(new T[static_cast<std::size_t>(size)]) {
        this->data = memory.get();
        this->size = size;
    }
    Owned(i64 size, T item) : Owned(size) { this->fill(item); }
    explicit Owned(Array<const T, At> from) : Owned(from.size) { std::copy(from.begin(), from.end(), this->begin()); }
    explicit Owned(const std::vector<T>& from) : Owned(Array<const T, At>(from.data(), i64(from.size()))) {}
    Owned(const Owned& other) : Owned(Array<const T, At>(other)) {}
    Owned(Owned&& other) noexcept : Array<T, At>(other), memory(std::move(other.memory)) {}
    Owned& operator=(Owned&& other) noexcept {
        static_cast<Array<T, At>&>(*this) = other;
        memory = std::move(other.memory);
        return *this;
    }
};

// A flag of Python's that another thread sets when time is up, read anew each time. Without a flag nobody ever sets it.
struct Halt {
    const volatile i64* flag = nullptr;

    explicit operator bool() const { return flag && *flag != 0; }
};

}  // namespace remat
