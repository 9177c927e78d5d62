"""What a file is that somebody takes for an ONNX model: named by its first bytes, with the way to a model."""

from __future__ import annotations

PYTORCH = "it is PyTorch's: export the module itself, torch.onnx.export(module, (example,), 'm.onnx', dynamo=True)"
BEGINNINGS = (  # at which byte, what stands there, and what that is
    (0, b"PK\x03\x04", f"a zip archive; if torch.save wrote it, {PYTORCH}"),
    (0, b"\x80\x02", f"a pickle; if torch.save wrote it, {PYTORCH}"),
    (0, b"\x80\x04", f"a pickle; if torch.save wrote it, {PYTORCH}"),
    (0, b"\x80\x05", f"a pickle; if torch.save wrote it, {PYTORCH}"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; `git lfs pull` brings the model"),
    (0, b"\x89HDF\r\n", "an HDF5 file, as Keras writes it; convert it with tf2onnx"),
    (4, b"TFL3", "a TensorFlow Lite model; convert it with tf2onnx"),
    (4, b"ORTM", "a model in ONNX Runtime's own format; give the .onnx file that it was made from"),
    (8, b'{"', "a safetensors file, which holds weights alone; export the module"),
    (0, b"\x1f\x8b", "compressed by gzip; decompress it first"),
)
TEXT_BYTES = 4096  # of a file's beginning: enough to see whether it is text


def kind_of_content(content: bytes) -> str:
    """What the file is, as the end of a sentence; nothing where it is not known."""
    if not content:
        return ": it is empty"
    for at, beginning, words in BEGINNINGS:
        if content[at:].startswith(beginning):
            return f": it is {words}"
    return f": it is text that begins {_begins(content)!r}" if _is_text(content[:TEXT_BYTES]) else ""


def _is_text(beginning: bytes) -> bool:
    """A character may be cut in two at the end."""
    words = beginning.decode("utf-8", "ignore")
    whole = len(words.encode()) >= len(beginning) - 3
    return whole and all(letter.isprintable() or letter in "\t\r\n" for letter in words)


def _begins(content: bytes) -> str:
    return " ".join(content[:TEXT_BYTES].decode("utf-8", "ignore").split())[:30]
