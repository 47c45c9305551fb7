# Circular lists of nodes that lie inside other structs. All inline.

# A place in a list; `next` is NULL where it is in none.
cdef struct Node:
    Node* next
    Node* prev

cdef inline void clear(Node* head) noexcept nogil:
    head.next = head
    head.prev = head

cdef inline bint is_empty(Node* head) noexcept nogil:
    return head.next == head

cdef inline void link_before(Node* node, Node* following) noexcept nogil:
    node.next = following
    node.prev = following.prev
    following.prev.next = node
    following.prev = node

cdef inline void unlink(Node* node) noexcept nogil:
    if node.next != NULL:
        node.prev.next = node.next
        node.next.prev = node.prev
        node.next = NULL
        node.prev = NULL
