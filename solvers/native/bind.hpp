// From Python to a loop and back: `bound<function>` is a Python function that calls the C++ function.
//
// Arguments are numbers, flags, arrays (anything with a buffer of the right type, taken as it is and never copied) and
// named tuples of these, which become the C++ struct whose `fields` are in the same order. The loop runs without the
// interpreter's lock. What it returns is an integer, an array, or a tuple of these.
//
// Invariant: only the stable ABI is used, so that one build serves every Python from 3.11 on. A loop sees no array of
// another type than it says, writes to none that may not be written, and sees no struct whose `check` refuses it.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <vector>

#include "solvers/native/array.hpp"

namespace remat::python {

// Python knows what went wrong.
struct Raised {};

template <class T>
constexpr const char* formats_of() {
    if constexpr (std::is_same_v<T, bool>) return "?";
    if constexpr (std::is_same_v<T, double>) return "d";
    return "lq";
}

// The buffers that a call has borrowed, given back at its end.
class Borrowed {
  public:
    Borrowed() = default;
    Borrowed(const Borrowed&) = delete;
    ~Borrowed() {
        for (Py_buffer& one : buffers_) PyBuffer_Release(&one);
    }

    // The buffer of an array of items of type T.
    template <class T>
    Py_buffer& take(PyObject* object, int dimensions) {
        constexpr const char* formats = formats_of<std::remove_const_t<T>>();
        constexpr int written = std::is_const_v<T> ? 0 : PyBUF_WRITABLE;
        Py_buffer one;
        if (PyObject_GetBuffer(object, &one, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | written)) throw Raised();
        const char* format = one.format ? one.format : "B";
        if (one.itemsize != sizeof(T) || one.ndim != dimensions || std::strlen(format) != 1 ||
            !std::strchr(formats, *format)) {
            PyErr_Format(PyExc_TypeError, "an array of %d dimensions and format '%s', not one of %d and '%s'", one.ndim,
                         format, dimensions, formats);
            PyBuffer_Release(&one);
            throw Raised();
        }
        buffers_.push_back(one);
        return buffers_.back();
    }

  private:
    std::vector<Py_buffer> buffers_;
};

inline void read(PyObject* from, i64& to, Borrowed&) {
    to = PyLong_AsLongLong(from);
    if (to == -1 && PyErr_Occurred()) throw Raised();
}

template <class Enum, std::enable_if_t<std::is_enum_v<Enum>, int> = 0>
void read(PyObject* from, Enum& to, Borrowed& borrowed) {
    i64 number;
    read(from, number, borrowed);
    to = static_cast<Enum>(number);
}

inline void read(PyObject* from, double& to, Borrowed&) {
    to = PyFloat_AsDouble(from);
    if (to == -1 && PyErr_Occurred()) throw Raised();
}

inline void read(PyObject* from, bool& to, Borrowed&) {
    const int truth = PyObject_IsTrue(from);
    if (truth < 0) throw Raised();
    to = truth != 0;
}

template <class T, class At>
void read(PyObject* from, Array<T, At>& to, Borrowed& borrowed) {
    const Py_buffer& buffer = borrowed.take<T>(from, 1);
    to = {static_cast<T*>(buffer.buf), buffer.shape[0]};
}

template <class T, class Row, class Column>
void read(PyObject* from, Grid<T, Row, Column>& to, Borrowed& borrowed) {
    const Py_buffer& buffer = borrowed.take<T>(from, 2);
    to = {static_cast<T*>(buffer.buf), buffer.shape[0], buffer.shape[1]};
}

inline void read(PyObject* from, Halt& to, Borrowed& borrowed) {
    Ints flag;
    read(from, flag, borrowed);
    require(flag.size == 1, "a flag to halt at is an array of one item");
    to.flag = flag.data;
}

template <class Struct>
auto read(PyObject* from, Struct& to, Borrowed& borrowed) -> decltype(to.check()) {
    auto fields = to.fields();
    constexpr Py_ssize_t COUNT = std::tuple_size_v<decltype(fields)>;
    if (!PyTuple_Check(from) || PyTuple_Size(from) != COUNT) {
        PyErr_Format(PyExc_TypeError, "a tuple of %zd fields is taken", COUNT);
        throw Raised();
    }
    Py_ssize_t place = 0;
    std::apply([&](auto&... field) { (read(PyTuple_GetItem(from, place++), field, borrowed), ...); }, fields);
    to.check();
}

// numpy.empty, looked up when the module is loaded.
inline PyObject* numpy_empty = nullptr;

inline PyObject* written(i64 number) { return PyLong_FromLongLong(number); }

template <class T, class At>
PyObject* written(const Owned<T, At>& array) {
    const char* type = std::is_same_v<T, bool> ? "?" : std::is_same_v<T, double> ? "f8" : "i8";
    PyObject* made = PyObject_CallFunction(numpy_empty, "ns", static_cast<Py_ssize_t>(array.size), type);
    Py_buffer buffer;
    if (!made || PyObject_GetBuffer(made, &buffer, PyBUF_WRITABLE)) throw Raised();
    if (array.size) std::memcpy(buffer.buf, array.data, sizeof(T) * static_cast<std::size_t>(array.size));
    PyBuffer_Release(&buffer);
    return made;
}

template <class... Parts>
PyObject* written(const std::tuple<Parts...>& parts) {
    PyObject* made = PyTuple_New(sizeof...(Parts));
    if (!made) throw Raised();
    Py_ssize_t place = 0;
    std::apply([&](const Parts&... part) { (PyTuple_SetItem(made, place++, written(part)), ...); }, parts);
    return made;
}

// While one exists, other threads of Python may run.
class Unlocked {
  public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    Unlocked(const Unlocked&) = delete;
    ~Unlocked() { PyEval_RestoreThread(state_); }

  private:
    PyThreadState* state_;
};

template <class Result, class... Parameters>
PyObject* call(Result (*function)(Parameters...), PyObject* const* arguments, Py_ssize_t count) {
    if (count != sizeof...(Parameters)) {
        PyErr_Format(PyExc_TypeError, "%d arguments are taken, not %zd", int(sizeof...(Parameters)), count);
        throw Raised();
    }
    Borrowed borrowed;
    std::tuple<std::decay_t<Parameters>...> given;
    std::apply([&](auto&... one) { (read(*arguments++, one, borrowed), ...); }, given);
    if constexpr (std::is_void_v<Result>) {
        Unlocked unlocked;
        std::apply(function, given);
    } else {
        auto run = [&] {
            Unlocked unlocked;
            return std::apply(function, given);
        };
        return written(run());
    }
    return Py_NewRef(Py_None);
}

template <auto function>
PyObject* bound(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    try {
        return call(function, arguments, count);
    } catch (const Raised&) {
        return nullptr;
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    } catch (const std::invalid_argument& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
        return nullptr;
    } catch (const std::exception& error) {  // nothing may leave C++ but as an error of Python's
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

// A row of a module's table of functions.
template <auto function>
PyMethodDef loop(const char* name) {
    // Python calls it with the arguments that METH_FASTCALL promises.
    const auto called = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(bound<function>));
    return {name, called, METH_FASTCALL, nullptr};
}

// Done when a module is loaded.
inline int prepare(PyObject*) {
    PyObject* numpy = PyImport_ImportModule("numpy");
    if (!numpy) return -1;
    numpy_empty = PyObject_GetAttrString(numpy, "empty");
    Py_DecRef(numpy);
    return numpy_empty ? 0 : -1;
}

}  // namespace remat::python
