# What a module was built from: `setup.py` defines it, `cogwork.freshness` compares it.

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH
