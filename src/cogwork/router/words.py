"""The words of a subject or a pattern, as numbers that are quick to compare.

Theory of operation. Words are separated by `.`, and a text is read eight bytes at a time. A word of
up to seven bytes is its own token: its bytes, and its length above them. The token of a longer one
is a digest under a secret, so that nobody outside can choose words that collide; where such tokens
are equal, the bytes have to be compared.

What is done for each word is inline, in `words.pxd`.
"""

import cython
from cython.cimports.libc.stdlib import free

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

WORDS_MIN = cython.declare(cython.Py_ssize_t, 32)


class Words:
    """The words of the text that was read last; they point into it.

    The empty text has no words; between two dots that touch lies an empty word.
    """

    def __cinit__(self, secret: cython.ulonglong):
        self.secret = secret

    def __dealloc__(self):
        free(self.at)

    def read(self, text, size):
        """Take a text apart, and digests it as a whole."""
        start: cython.Py_ssize_t = 0
        word: cython.pointer(Word)
        self.count = 0
        self.digest = 0
        while start <= size and size:
            if self.count == self.capacity:
                self._grow()
            word = self.at + self.count
            read_word(word, text + start, size - start, self.secret)
            self.digest = cogwork_fold(self.digest ^ word.token, self.secret)
            self.count += 1
            start += word.size + 1
        return 0

    def _grow(self):
        capacity: cython.Py_ssize_t = max(2 * self.capacity, WORDS_MIN)
        self.at = cython.cast(
            cython.pointer(Word), resized(self.at, capacity * cython.sizeof(Word))
        )
        self.capacity = capacity
        return 0
