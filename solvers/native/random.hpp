// The Mersenne Twister with the algorithms of numpy's legacy generator: a seed gives the same draws on every machine. What
// a search makes of them is the same wherever the C library rounds exp and pow alike.
//
// `Random random(seed)` draws what numpy.random.RandomState(seed) does: `uniform` is its random_sample, `below` its
// randint for bounds up to 2**32 (held by tests/solvers/test_native.py).
#pragma once

#include "solvers/native/array.hpp"

namespace remat {

class Random {
  public:
    explicit Random(i64 seed) {
        std::uint32_t word = static_cast<std::uint32_t>(seed);
        for (std::uint32_t place = 0; place < LENGTH; place++) {
            words_[place] = word;
            word = 1812433253U * (word ^ (word >> 30)) + place + 1;
        }
    }

    // A number from 0 up to, not including, 1.
    double uniform() {
        const std::uint32_t high = next() >> 5, low = next() >> 6;
        return (high * 67108864.0 + low) / 9007199254740992.0;
    }

    // An integer from 0 up to, not including, `bound`. Nothing is drawn where there is no choice.
    i64 below(i64 bound) {
        if (bound <= 1) return 0;
        std::uint32_t mask = static_cast<std::uint32_t>(bound - 1);
        for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
        while (true) {
            const i64 drawn = next() & mask;
            if (drawn < bound) return drawn;
        }
    }

  private:
    static constexpr std::uint32_t LENGTH = 624, MIDDLE = 397;

    std::uint32_t next() {
        if (place_ == LENGTH) renew();
        std::uint32_t word = words_[place_++];
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c5680U;
        word ^= (word << 15) & 0xefc60000U;
        return word ^ (word >> 18);
    }

    static std::uint32_t twist(std::uint32_t one, std::uint32_t next) {
        const std::uint32_t word = (one & 0x80000000U) | (next & 0x7fffffffU);
        return (word >> 1) ^ (word & 1 ? 0x9908b0dfU : 0);
    }

    void renew() {
        std::uint32_t k = 0;
        for (; k < LENGTH - MIDDLE; k++) words_[k] = words_[k + MIDDLE] ^ twist(words_[k], words_[k + 1]);
        for (; k < LENGTH - 1; k++) words_[k] = words_[k + MIDDLE - LENGTH] ^ twist(words_[k], words_[k + 1]);
        words_[k] = words_[MIDDLE - 1] ^ twist(words_[k], words_[0]);
        place_ = 0;
    }

    std::uint32_t words_[LENGTH];
    std::uint32_t place_ = LENGTH;
};

}  // namespace remat
